#include "cli/serve/tls.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "cli/common/file.h"

enum { CERTIFICATE, KEY, CLIENT_CA, FILES };
/* Files of one renewal come one after the other. */
enum { PEM_MAX = 1 << 20, LOOK_MS = 1000, SETTLE_MS = 200 };

struct serve_tls {
	const struct serve_tls_files *said;
	char paths[FILES][PATH_MAX]; /* "": none */
	struct buf texts[FILES];
	struct http_tls tls; /* borrows from them */
	uv_fs_poll_t polls[FILES];
	uv_timer_t settle;
	unsigned open; /* handles */
	int (*renew)(void *owner, const struct http_tls *tls, struct err *e); /* NULL: closed */
	void *owner;
};

static void name_files(struct serve_tls *t, const struct config_file *f)
{
	const struct serve_tls_files *s = t->said;
	const struct config_tls *c = &f->tls;
	const struct str paths[FILES] = {
		[CERTIFICATE] = s->certificate ? str_of(s->certificate) : c->certificate,
		[KEY] = s->certificate ? str_of(s->key) : c->key,
		[CLIENT_CA] = !s->certificate ? c->client_ca
			    : s->client_ca    ? str_of(s->client_ca)
					      : STR_NONE,
	};

	for (size_t i = 0; i < FILES; i++)
		snprintf(t->paths[i], PATH_MAX, "%.*s", STR_ARG(paths[i]));
}

/* As PostgreSQL has it, so that a host's own keys can be shared by a group. */
static int check_key(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "%.120s", path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(e, ERR_DENIED, "%.120s belongs to another user", path);
	if (st.st_mode & (st.st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO))
		return err_set(e, ERR_DENIED, "others may use the private key %.120s: chmod 600 it",
			       path);
	return 0;
}

static int read_one(struct serve_tls *t, size_t i, struct err *e)
{
	const char *path = t->paths[i];
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err_sys(e, errno, "open %.120s", path);
	if ((i == KEY && check_key(fd, path, e) < 0) || file_read_fd(fd, path, &t->texts[i], e) < 0)
		return -1;
	if (t->texts[i].n == 0 || memchr(t->texts[i].p, '\0', t->texts[i].n))
		return err_set(e, ERR_INVALID, "%.120s is no PEM file", path);
	return 0;
}

static void tls_forget(struct serve_tls *t)
{
	if (t->texts[KEY].p)
		explicit_bzero(t->texts[KEY].p, t->texts[KEY].n);
	for (size_t i = 0; i < FILES; i++)
		buf_fini(&t->texts[i]);
	t->tls = (struct http_tls){ NULL };
}

static int read_all(struct serve_tls *t, struct err *e)
{
	tls_forget(t);
	for (size_t i = 0; i < FILES; i++) {
		t->texts[i] = BUF_INIT(PEM_MAX);
		if (t->paths[i][0] && read_one(t, i, e) < 0)
			return -1;
	}
	t->tls = (struct http_tls){ .certificate = t->texts[CERTIFICATE].p,
				    .key = t->texts[KEY].p,
				    .client_ca = t->texts[CLIENT_CA].p };
	return 0;
}

int serve_tls_open(uv_loop_t *loop, const struct serve_tls_files *said, const struct config_file *f,
		   struct serve_tls **ret, struct err *e)
{
	struct serve_tls *t;

	*ret = NULL;
	if (!said->certificate != !said->key)
		return err_set(e, ERR_INVALID, "--tls-cert and --tls-key belong together");
	if (said->client_ca && !said->certificate)
		return err_set(e, ERR_INVALID, "--tls-client-ca wants --tls-cert and --tls-key");
	if (!said->certificate && !f->has_tls)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, ERR_LIMIT, "out of memory");
	t->said = said;
	name_files(t, f);
	uv_timer_init(loop, &t->settle);
	t->settle.data = t;
	t->open = 1 + FILES;
	for (size_t i = 0; i < FILES; i++) {
		uv_fs_poll_init(loop, &t->polls[i]);
		t->polls[i].data = t;
	}
	if (read_all(t, e) < 0) {
		serve_tls_close(t);
		return -1;
	}
	*ret = t;
	return 0;
}

const struct http_tls *serve_tls_texts(const struct serve_tls *t)
{
	return &t->tls;
}

static void on_settled(uv_timer_t *timer)
{
	struct serve_tls *t = timer->data;
	struct err e = ERR_INIT;

	if (!t->renew)
		return;
	if (read_all(t, &e) < 0 || t->renew(t->owner, &t->tls, &e) < 0)
		log_warn("the certificate stays as it was: %s", e.msg);
	else
		log_info("the certificate was read again");
	tls_forget(t);
}

static void on_change(uv_fs_poll_t *poll, int status, const uv_stat_t *before,
		      const uv_stat_t *after)
{
	struct serve_tls *t = poll->data;

	uv_timer_start(&t->settle, on_settled, SETTLE_MS, 0);
}

/* A poll tells of changes after its first look alone, so the files are read once more behind
 * that. */
static void tls_watch(struct serve_tls *t)
{
	for (size_t i = 0; i < FILES; i++) {
		uv_fs_poll_stop(&t->polls[i]);
		if (t->paths[i][0] &&
		    uv_fs_poll_start(&t->polls[i], on_change, t->paths[i], LOOK_MS) < 0)
			log_warn("changes of %.120s are not seen", t->paths[i]);
	}
	uv_timer_start(&t->settle, on_settled, SETTLE_MS, 0);
}

void serve_tls_watch(struct serve_tls *t,
		     int (*renew)(void *owner, const struct http_tls *tls, struct err *e),
		     void *owner)
{
	tls_forget(t);
	t->renew = renew;
	t->owner = owner;
	tls_watch(t);
}

void serve_tls_configure(struct serve_tls *t, const struct config_file *f)
{
	char before[FILES][PATH_MAX];

	if (!t->said->certificate && !f->has_tls) {
		log_warn("the addresses speak TLS until the hub is started again");
		return;
	}
	memcpy(before, t->paths, sizeof(before));
	name_files(t, f);
	if (memcmp(before, t->paths, sizeof(before)) == 0)
		return;
	tls_watch(t);
}

static void on_closed(uv_handle_t *handle)
{
	struct serve_tls *t = handle->data;

	if (--t->open == 0)
		free(t);
}

void serve_tls_close(struct serve_tls *t)
{
	if (!t)
		return;
	tls_forget(t);
	t->renew = NULL;
	uv_close((uv_handle_t *)&t->settle, on_closed);
	for (size_t i = 0; i < FILES; i++)
		uv_close((uv_handle_t *)&t->polls[i], on_closed);
}
