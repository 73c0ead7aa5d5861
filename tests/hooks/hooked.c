/*
 * `holt` with hooks of the tests' own of every call (call/call.h). HOLT_ROAD is a
 * folder:
 *
 *	log	gets a JSON line for each hook that is called
 *	deny	while it is there, policy denies what it names, a prefix of actions
 *	hide	while it is there, no sandbox is seen
 *	delay	while it is there, policy, approval and audit take so many milliseconds; they go
 *		on as soon as it is gone
 *	approve	likewise, approval alone
 *	secret	while it is there, its text is replaced by [gone] in all that leaves
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "call/call.h"
#include "cli/common/verb.h"
#include "json/document/write.h"

enum { FILE_MAX = 256, LINE_MAX_ = 4096 };

static const char *folder;

/* What a file of the folder says; NULL: it is not there. */
static const char *setting(const char *name, char text[FILE_MAX])
{
	char path[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	n = read(fd, text, FILE_MAX - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void note(const char *hook, struct call *c, const char *end)
{
	autobuf struct buf b = BUF_INIT(LINE_MAX_);
	struct json_writer w = json_writer(&b);
	char path[4096], digest[OP_DIGEST] = "";
	const void *request = call_request(c);
	struct err e;
	int fd;

	if (request && op_digest(call_op(c), request, digest, &e) < 0 && e.code != ERR_INVALID)
		abort();
	json_write_object(&w);
	json_write_key(&w, "hook");
	json_write_text(&w, hook);
	json_write_key(&w, "action");
	json_write_text(&w, call_op(c)->action);
	json_write_key(&w, "effect");
	json_write_text(&w, op_effect_names[call_op(c)->effect]);
	json_write_key(&w, "who");
	json_write_text(&w, call_principal(c) ? call_principal(c)->name : "");
	json_write_key(&w, "target");
	json_write_str(&w, request ? op_target(call_op(c), request) : STR_LIT(""));
	json_write_key(&w, "digest");
	json_write_text(&w, digest);
	json_write_key(&w, "end");
	json_write_text(&w, end);
	json_write_object_end(&w);
	if (json_write_done(&w, &e) < 0 || buf_add(&b, "\n", 1, &e) < 0)
		abort();
	snprintf(path, sizeof(path), "%s/log", folder);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write(fd, b.p, b.n) < 0)
		abort();
	close(fd);
}

/* ---- policy and approval ------------------------------------------------------------------- */

enum { LOOK_MS = 50 };

struct pause {
	uv_timer_t timer;
	const char *name; /* of the file */
	uint64_t until;
	struct call *call;
	void (*then)(struct call *c);
};

static void pause_closed(uv_handle_t *h)
{
	free(h->data);
}

static void pause_over(uv_timer_t *t)
{
	struct pause *p = t->data;
	struct call *c = p->call;
	char text[FILE_MAX];

	if (uv_now(t->loop) < p->until && setting(p->name, text))
		return;
	uv_close((uv_handle_t *)t, pause_closed);
	p->then(c);
}

/* Goes on at once or later. */
static void later(struct call *c, const char *name, void (*then)(struct call *c))
{
	char text[FILE_MAX];
	const char *file = setting(name, text) ? name : "delay", *delay = setting(file, text);
	struct pause *p = delay ? calloc(1, sizeof(*p)) : NULL;

	if (!p) {
		then(c);
		return;
	}
	p->name = file;
	p->call = c;
	p->then = then;
	p->timer.data = p;
	uv_timer_init(call_loop(c), &p->timer);
	p->until = uv_now(call_loop(c)) + strtoull(delay, NULL, 10);
	uv_timer_start(&p->timer, pause_over, LOOK_MS, LOOK_MS);
}

static void on_policy(void *data, struct call *c)
{
	char text[FILE_MAX];
	const char *denied = setting("deny", text);
	struct err e;

	note("policy", c, "");
	if (!denied || strncmp(call_op(c)->action, denied, strlen(denied)) != 0) {
		later(c, "delay", call_allow);
		return;
	}
	err_set(&e, ERR_DENIED, "the test's policy denies %s", call_op(c)->action);
	call_deny(c, &e);
}

static void on_approval(void *data, struct call *c)
{
	note("approval", c, "");
	later(c, "approve", call_allow);
}

/* ---- what leaves --------------------------------------------------------------------------- */

static struct str on_redact(void *data, struct call *c, const struct field *row, struct str text)
{
	static const char gone[] = "[gone]";
	char room[FILE_MAX];
	const char *secret = setting("secret", room);
	size_t n = secret ? strlen(secret) : 0;
	struct err e;
	char *to;
	size_t at = 0;

	if (n == 0 || text.n < n || !memmem(text.p, text.n, secret, n))
		return text;
	to = arena_alloc(call_arena(c), text.n * sizeof(gone), &e);
	if (!to)
		return STR_LIT("");
	for (size_t i = 0; i < text.n;) {
		bool here = text.n - i >= n && memcmp(text.p + i, secret, n) == 0;

		memcpy(to + at, here ? gone : text.p + i, here ? sizeof(gone) - 1 : 1);
		at += here ? sizeof(gone) - 1 : 1;
		i += here ? n : 1;
	}
	return (struct str){ to, at };
}

static bool on_sees(void *data, const struct principal *who, struct str owner)
{
	char text[FILE_MAX];

	return !setting("hide", text);
}

static void on_audit(void *data, struct call *c, const struct op_outcome *o)
{
	note("audit", c, o->err ? err_info(o->err->code)->name : "ok");
	later(c, "delay", call_audited);
}

static const struct op_hooks hooks = { .sees = on_sees,
				       .policy = on_policy,
				       .approval = on_approval,
				       .redact = on_redact,
				       .audit = on_audit };

int main(int argc, char **argv)
{
	const struct cli cli = { .hooks = &hooks };

	folder = getenv("HOLT_ROAD");
	if (!folder)
		return 125;
	log_init("holt");
	return cli_main(&cli, argc, argv);
}
