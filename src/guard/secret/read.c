/*
 * Values of secrets, one after the other. The environment and the store are at hand; a file may be
 * slow, so the work pool reads it; a command is a process with a deadline, in a session of its own
 * so that what it started can be ended with it. It gets nothing from the hub but where its home is:
 * no input, no descriptor, and its standard error, which may quote the value, goes nowhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/programs.h"
#include "guard/secret/internal.h"

struct item {
	char name[SECRETS_NAME_MAX + 1];
	struct secret *value;
};

struct secrets_read {
	const struct secrets *of;
	uv_loop_t *loop;
	secrets_on_read on_read; /* NULL: it was told, or is not wanted any more */
	void *data;
	size_t n, at;
	struct buf bytes; /* of the file or command */
	/* A file: */
	uv_work_t work;
	bool working;
	char *path;
	struct err failed;
	/* A command: */
	uv_process_t process;
	uv_pipe_t out;
	bool exited, drained;
	int64_t status;
	/* It starts the next one, and is a command's deadline. */
	uv_timer_t timer;
	unsigned handles; /* open ones */
	struct item items[];
};

static void read_next(uv_timer_t *t);

/* ---- the end ------------------------------------------------------------------------------- */

static void read_free(struct secrets_read *r)
{
	if (r->handles || r->working)
		return;
	for (size_t i = 0; i < r->n; i++)
		secret_free(r->items[i].value);
	buf_wipe(&r->bytes);
	free(r->path);
	free(r);
}

static void read_closed(uv_handle_t *h)
{
	struct secrets_read *r = h->data;

	r->handles--;
	read_free(r);
}

static void read_close(void *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, read_closed);
}

/* A process that runs is killed and waited for: its handle is closed at its end. One that has ended
 * may have left another of its group behind, which holds the pipe. */
static void read_stop(struct secrets_read *r)
{
	read_close(&r->timer);
	if (r->process.pid && !(r->exited && r->drained))
		kill(-r->process.pid, SIGKILL);
	if (r->out.loop)
		read_close(&r->out);
}

static void read_end(struct secrets_read *r, const struct err *err)
{
	secrets_on_read on_read = take_ptr(r->on_read);
	struct secret *values[SECRETS_READ_MAX];

	for (size_t i = 0; i < r->n; i++)
		values[i] = r->items[i].value;
	read_stop(r);
	if (on_read)
		on_read(r->data, err ? NULL : values, err);
}

void secrets_read_cancel(struct secrets_read *r)
{
	r->on_read = NULL;
	read_stop(r);
}

/* The one that is being read has this value, or failed. */
static void read_have(struct secrets_read *r, struct secret *value, const struct err *e)
{
	buf_wipe(&r->bytes);
	r->items[r->at].value = value;
	if (!r->on_read) {
		read_stop(r);
	} else if (!value) {
		read_end(r, e);
	} else {
		r->at++;
		uv_timer_start(&r->timer, read_next, 0, 0);
	}
}

static struct str read_name(const struct secrets_read *r)
{
	return str_of(r->items[r->at].name);
}

static void read_fail(struct secrets_read *r, struct err *e)
{
	err_wrap(e, "secret %s", r->items[r->at].name);
	read_have(r, NULL, e);
}

/* ---- a file -------------------------------------------------------------------------------- */

static void read_work(uv_work_t *w)
{
	struct secrets_read *r = w->data;

	if (private_read(AT_FDCWD, r->path, &r->bytes, &r->failed) == 0)
		r->failed = ERR_INIT;
}

static void read_worked(uv_work_t *w, int status)
{
	struct secrets_read *r = w->data;
	struct err e = r->failed;

	r->working = false;
	free(take_ptr(r->path));
	if (!r->on_read)
		read_free(r);
	else if (e.code)
		read_fail(r, &e);
	else
		read_have(r, secret_of(read_name(r), buf_str(&r->bytes), &e), &e);
}

static int read_file(struct secrets_read *r, const struct source *src, struct err *e)
{
	r->path = mem_dup(src->from, strlen(src->from));
	r->work.data = r;
	if (!r->path || uv_queue_work(r->loop, &r->work, read_work, read_worked) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	r->working = true;
	return 0;
}

/* ---- a command ----------------------------------------------------------------------------- */

static void command_check(struct secrets_read *r)
{
	struct err e = ERR_INIT;

	if (!r->exited || !r->drained || !r->on_read)
		return;
	uv_timer_stop(&r->timer);
	if (r->status != 0) {
		err_set(&e, ERR_IO, "its command failed with status %lld", (long long)r->status);
		read_fail(r, &e);
	} else {
		read_have(r, secret_of(read_name(r), buf_str(&r->bytes), &e), &e);
	}
}

static void command_exited(uv_process_t *p, int64_t status, int signal)
{
	struct secrets_read *r = p->data;

	r->exited = true;
	r->status = signal ? 128 + signal : status;
	read_close(p);
	command_check(r);
}

static void command_room(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
	struct secrets_read *r = h->data;

	*b = uv_buf_init(r->bytes.p + r->bytes.n, (unsigned)(r->bytes.max - r->bytes.n));
}

static void command_output(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
	struct secrets_read *r = s->data;
	struct err e;

	if (n > 0) {
		buf_advance(&r->bytes, (size_t)n);
	} else if (n < 0 && n != UV_ENOBUFS) {
		r->drained = true;
		read_close(s);
		command_check(r);
	}
	if (r->on_read && !r->drained && r->bytes.n == r->bytes.max) {
		err_set(&e, ERR_INVALID, "its command prints more than %d bytes", SECRETS_MAX);
		read_fail(r, &e);
	}
}

static void command_late(uv_timer_t *t)
{
	struct secrets_read *r = t->data;
	struct err e;

	err_set(&e, ERR_TIMEOUT, "its command did not end within %d seconds",
		SECRETS_COMMAND_MS / 1000);
	read_fail(r, &e);
}

static void command_put_env(char *text, size_t size, const char *name, char **env, size_t *n)
{
	const char *value = getenv(name);

	if (value && snprintf(text, size, "%s=%s", name, value) < (int)size)
		env[(*n)++] = text;
}

static int read_command(struct secrets_read *r, const struct source *src, struct err *e)
{
	static const char *const names[] = { "HOME", "USER", "LOGNAME" };
	char texts[ARRAY_LEN(names)][4096];
	char *env[ARRAY_LEN(names) + 3] = {
		(char *)"PATH=" PROGRAMS_PATH,
		(char *)"LANG=C.UTF-8",
	};
	uv_stdio_container_t stdio[3] = { { .flags = UV_IGNORE },
					  { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
					    .data.stream = (uv_stream_t *)&r->out },
					  { .flags = UV_IGNORE } };
	const uv_process_options_t o = {
		.exit_cb = command_exited,
		.file = src->argv[0],
		.args = src->argv,
		.env = env,
		.cwd = "/",
		.flags = UV_PROCESS_DETACHED,
		.stdio_count = 3,
		.stdio = stdio,
	};
	size_t n = 2;
	int rc;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		command_put_env(texts[i], sizeof(texts[i]), names[i], env, &n);
	/* No growing: that would leave a copy behind. */
	if (!buf_reserve(&r->bytes, r->bytes.max, e))
		return -1;
	r->exited = r->drained = false;
	uv_pipe_init(r->loop, &r->out, 0);
	r->out.data = r;
	r->process.data = r;
	r->handles += 2;
	rc = uv_spawn(r->loop, &r->process, &o);
	if (rc < 0) {
		r->process.pid = 0;
		read_close(&r->process);
		read_close(&r->out);
		return err_set(e, ERR_IO, "its command can't be run: %s", uv_strerror(rc));
	}
	uv_timer_start(&r->timer, command_late, SECRETS_COMMAND_MS, 0);
	uv_read_start((uv_stream_t *)&r->out, command_room, command_output);
	return 0;
}

/* ---- all of them --------------------------------------------------------------------------- */

static struct secret *read_env(const struct source *src, struct err *e)
{
	const char *value = getenv(src->from);

	if (value)
		return secret_of(str_of(src->name), str_of(value), e);
	err_set(e, ERR_IO, "secret %s: its variable is not in the hub's environment", src->name);
	return NULL;
}

static void read_begin(struct secrets_read *r)
{
	struct str name = read_name(r);
	const struct source *src = source_find(r->of, name);
	struct err e = ERR_INIT;

	switch (src ? src->provider : SECRETS_STORE) {
	case SECRETS_ENV:
		read_have(r, read_env(src, &e), &e);
		break;
	case SECRETS_FILE:
		if (read_file(r, src, &e) < 0)
			read_fail(r, &e);
		break;
	case SECRETS_COMMAND:
		if (read_command(r, src, &e) < 0)
			read_fail(r, &e);
		break;
	default:
		read_have(r, secrets_stored(r->of, name, &e), &e);
		break;
	}
}

/* A handle of a command may still be closing, and is used again. */
static bool read_is_closing(const struct secrets_read *r)
{
	return r->handles > 1;
}

static void read_next(uv_timer_t *t)
{
	struct secrets_read *r = t->data;

	if (read_is_closing(r))
		uv_timer_start(&r->timer, read_next, 1, 0);
	else if (r->at < r->n)
		read_begin(r);
	else
		read_end(r, NULL);
}

struct secrets_read *secrets_read_start(const struct secrets *s, uv_loop_t *loop,
					const struct str *names, size_t n, secrets_on_read on_read,
					void *data, struct err *e)
{
	struct secrets_read *r;

	for (size_t i = 0; i < n; i++) {
		if (secrets_check_name(names[i], e) < 0)
			return NULL;
	}
	if (n > SECRETS_READ_MAX) {
		err_set(e, ERR_INVALID, "more than %d secrets in one call", SECRETS_READ_MAX);
		return NULL;
	}
	r = calloc(1, sizeof(*r) + n * sizeof(r->items[0]));
	if (!r)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*r = (struct secrets_read){
		.of = s,
		.loop = loop,
		.on_read = on_read,
		.data = data,
		.n = n,
		.bytes = VALUE_BUF,
	};
	for (size_t i = 0; i < n; i++)
		memcpy(r->items[i].name, names[i].p, names[i].n);
	uv_timer_init(loop, &r->timer);
	r->timer.data = r;
	r->handles = 1;
	uv_timer_start(&r->timer, read_next, 0, 0);
	return r;
}
