#include "cli/link/server.h"

#include <stdio.h>
#include <stdlib.h>

#include "http/client/url.h"
#include "loop/await.h"

enum { BYTES_MAX = 1 << 20, WHOLE_MS = 30000, URL_MAX = 2048 };

char *server_url(const char *said, const struct tls_options *tls, struct http_client_options *to,
		 struct err *e)
{
	char *url;
	size_t n = strlen(said);

	if (!tls->certificate != !tls->key) {
		err_set(e, ERR_INVALID, "--tls-cert and --tls-key belong together");
		return NULL;
	}
	*to = (struct http_client_options){ .ca = tls->ca,
					    .certificate = tls->certificate,
					    .key = tls->key };
	if (http_url_check(said, e) < 0)
		return NULL;
	if (n > URL_MAX || strpbrk(said, "@?#")) {
		err_set(e, ERR_INVALID,
			"the URL of a server has neither credentials nor a query, such as "
			"https://hub.example:5757");
		return NULL;
	}
	while (n > 0 && said[n - 1] == '/')
		n--;
	url = strndup(said, n);
	if (!url)
		err_set(e, ERR_LIMIT, "out of memory");
	return url;
}

struct asking {
	bool done;
	int status;
	struct buf came;
	struct err err;
};

static void on_head(void *owner, struct http_exchange *x, int status)
{
	struct asking *a = owner;

	a->status = status;
}

static void on_bytes(void *owner, struct http_exchange *x, struct str bytes)
{
	struct asking *a = owner;

	if (buf_add(&a->came, bytes.p, bytes.n, &a->err) == 0)
		return;
	http_exchange_cancel(x);
	a->done = true;
}

static void on_end(void *owner, struct http_exchange *x, const struct err *e)
{
	struct asking *a = owner;

	if (e)
		a->err = *e;
	a->done = true;
}

static void ask(uv_loop_t *loop, struct http_client *http, const char *url,
		const struct secret *token, struct asking *a)
{
	static const struct http_exchange_events events = { on_head, on_bytes, on_end };
	struct buf bearer = BUF_INIT(8192);
	struct http_header header = { "Authorization", STR_NONE };
	const struct http_spec spec = { .method = "GET",
					.url = url,
					.headers = &header,
					.n_headers = token ? 1 : 0,
					.whole_ms = WHOLE_MS };
	struct loop_await await;
	struct str text = token ? secret_expose(token, "sent to its server") : STR_LIT("");

	if (buf_addf(&bearer, &a->err, "Bearer %.*s", STR_ARG(text)) == 0) {
		header.value = buf_str(&bearer);
		loop_await_init(&await, loop);
		if (http_exchange_start(http, &spec, &events, a, &a->err))
			loop_await(&await, &a->done);
		uv_close((uv_handle_t *)&await.prepare, NULL);
	}
	buf_wipe(&bearer);
}

struct json_doc *server_ask(const char *url, const struct http_client_options *o,
			    const struct secret *token, const char *path, int *ret_status,
			    struct err *e)
{
	struct asking a = { .came = BUF_INIT(BYTES_MAX), .err = ERR_INIT };
	struct json_doc *doc = NULL;
	struct http_client *http;
	char whole[URL_MAX + 256];
	uv_loop_t loop;

	snprintf(whole, sizeof(whole), "%s%s", url, path);
	if (uv_loop_init(&loop) != 0) {
		err_set(e, ERR_LIMIT, "no event loop");
		return NULL;
	}
	http = http_client_new(&loop, o, &a.err);
	if (http) {
		ask(&loop, http, whole, token, &a);
		http_client_close(http, NULL, NULL);
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	if (a.err.code == ERR_NONE) {
		*ret_status = a.status;
		doc = json_parse(buf_str(&a.came), NULL, &a.err);
	}
	if (!doc) {
		*e = a.err;
		err_wrap(e, "%.100s", url);
	}
	buf_fini(&a.came);
	return doc;
}
