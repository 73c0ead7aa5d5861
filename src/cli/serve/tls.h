#pragma once
/*
 * The files of the TLS addresses of `holt serve`: named by the command line, else by `tls` of the
 * operator's file. They are looked at every second and read again when one has changed.
 */
#include <uv.h>

#include "config/config.h"
#include "http/server/server.h"

struct serve_tls;

struct serve_tls_files {
	const char *certificate, *key, *client_ca; /* NULL: not said */
};

/* Reads them. *ret NULL: there is no TLS. said is borrowed until serve_tls_close(). ERR_DENIED:
 * more users than the owner of the key may read it; a key of root's, its group may. */
int serve_tls_open(uv_loop_t *loop, const struct serve_tls_files *said, const struct config_file *f,
		   struct serve_tls **ret, struct err *e) MUST_USE;

/* The texts of the files; borrowed until serve_tls_watch(). */
const struct http_tls *serve_tls_texts(const struct serve_tls *t);

/* Forgets what was read. From now on renew() is called with what the files say after a change, and
 * once at the start; -1 of it is logged, as is what can't be read, and the addresses go on with
 * what they have. */
void serve_tls_watch(struct serve_tls *t,
		     int (*renew)(void *owner, const struct http_tls *tls, struct err *e),
		     void *owner);

/* The operator's file was read again. */
void serve_tls_configure(struct serve_tls *t, const struct config_file *f);

void serve_tls_close(struct serve_tls *t); /* NULL-safe; renew() is not called any more */
