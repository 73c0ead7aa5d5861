/*
 * libcurl says which sockets it waits for and for how long; polls and a timer of the loop tell it
 * when that happens. An easy handle must not be removed while one of our callbacks from libcurl is
 * on the stack. So whoever ends an exchange there only marks it, and the callback's result makes
 * libcurl end it.
 */
#include "http/client/client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "http/client/address.h"
#include "http/client/peer.h"
#include "http/client/url.h"

enum {
	CONNECT_MS = 10000,
	CONNECTIONS = 64,
	HEADER_MAX = 64 << 10,
	KEEPALIVE_S = 60,
	GIVE_BYTES = 256 << 10,
	/* Many servers close a connection after 5 s idle; a request sent at that moment is lost. */
	IDLE_S = 4,
};

struct http_client {
	uv_loop_t *loop;
	uv_timer_t timer;
	/* used instead of a timer that is already due: such timers, one after another, would starve
	 * the loop */
	uv_idle_t soon;
	CURLM *multi;
	char *unix_socket;
	char *no_proxy;
	char *ca, *certificate, *key; /* files; NULL */
	unsigned connect_ms;
	size_t header_max;
	bool public_only, loopback_too, own_only;
	struct http_exchange *exchanges;
	struct waiting *waits;
	unsigned handles; /* open handles of the loop */
	bool inside; /* libcurl is on the stack */
	void (*on_closed)(void *owner);
	void *owner;
};

struct http_exchange {
	struct http_client *client;
	struct http_exchange *next, **at;
	CURL *easy;
	struct curl_slist *headers;
	char *body;
	size_t body_n, body_at; /* body_at: bytes of it that were sent */
	size_t (*give)(void *owner, char *to, size_t n);
	const struct http_exchange_events *ev;
	void *owner;
	size_t header_bytes; /* bytes of headers that were received */
	bool headed; /* on_head was called */
	bool refused; /* it tried to connect to a forbidden address */
	curl_socket_t fd; /* that it has opened; -1: none */
	struct err stranger; /* why who answers may not have the request; ERR_NONE: nothing */
	bool cancelled;
	bool listed;
	bool added; /* libcurl has the handle */
};

/* One socket that libcurl waits for. */
struct waiting {
	uv_poll_t poll;
	struct http_client *client;
	struct waiting **at, *next; /* of the client's list */
	curl_socket_t fd;
};

static int out_of_memory(struct err *e)
{
	return err_set(e, ERR_LIMIT, "out of memory");
}

/* --- the end of an exchange --- */

static void client_unlist(struct http_exchange *x)
{
	if (!x->listed)
		return;
	x->listed = false;
	*x->at = x->next;
	if (x->next)
		x->next->at = x->at;
	if (x->added)
		curl_multi_remove_handle(x->client->multi, x->easy);
}

/* Wipes headers and body, since they may hold credentials. */
static void exchange_free(struct http_exchange *x)
{
	if (!x)
		return;
	client_unlist(x);
	curl_easy_cleanup(x->easy);
	for (struct curl_slist *l = x->headers; l; l = l->next)
		explicit_bzero(l->data, strlen(l->data));
	curl_slist_free_all(x->headers);
	if (x->body)
		explicit_bzero(x->body, x->body_n);
	free(x->body);
	free(x);
}
AUTO_DEFINE(exchange_free, struct http_exchange)

/* libcurl limits the length of one line, and its limit is higher than ours for all headers. It
 * reports a longer line as lack of memory, and since 8.6 as CURLE_TOO_LARGE. */
static bool is_long_line(const struct http_exchange *x, CURLcode code)
{
	enum { TOO_LARGE = 100 }; /* older headers have no name for it */
	curl_off_t us = 0;
	long sent = 0;

	if (x->headed)
		return false;
	curl_easy_getinfo(x->easy, CURLINFO_STARTTRANSFER_TIME_T, &us);
	curl_easy_getinfo(x->easy, CURLINFO_REQUEST_SIZE, &sent);
	return (code == CURLE_OUT_OF_MEMORY && us > 0) || ((int)code == TOO_LARGE && sent > 0);
}

static int read_code(const struct http_exchange *x, CURLcode code, struct err *e)
{
	if (x->header_bytes > x->client->header_max || is_long_line(x, code))
		return err_set(e, ERR_TOO_LARGE, "headers of more than %zu bytes",
			       x->client->header_max);
	if (code == CURLE_COULDNT_CONNECT && x->refused)
		return err_set(e, ERR_NOT_PUBLIC, "its address is not one of the public Internet");
	if (x->stranger.code != ERR_NONE) {
		*e = x->stranger;
		return -1;
	}
	if (code == CURLE_SEND_FAIL_REWIND)
		return err_set(e, ERR_TRANSPORT, "the connection ended without an answer");
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(e, ERR_TIMEOUT, "no answer in time");
	if (code == CURLE_OUT_OF_MEMORY)
		return out_of_memory(e);
	if (code == CURLE_UNSUPPORTED_PROTOCOL) /* the URL's scheme was checked before */
		return err_set(e, ERR_TRANSPORT, "what answers there does not speak HTTP");
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return err_set(e, ERR_TRANSPORT,
			       "its certificate is not trusted: no known authority has signed it "
			       "for this name and time");
	return err_set(e, ERR_TRANSPORT, "%s", curl_easy_strerror(code));
}

static void client_end(struct http_exchange *x, CURLcode code)
{
	struct err e = ERR_INIT;

	if (code == CURLE_OK && !x->headed)
		code = CURLE_WEIRD_SERVER_REPLY; /* it ended within its headers */
	client_unlist(x); /* on_end may close the client */
	if (!x->cancelled) {
		if (code != CURLE_OK)
			read_code(x, code, &e);
		x->ev->on_end(x->owner, x, code != CURLE_OK ? &e : NULL);
	}
	exchange_free(x);
}

bool http_exchange_sent(const struct http_exchange *x)
{
	long sent = 0;

	return curl_easy_getinfo(x->easy, CURLINFO_REQUEST_SIZE, &sent) == CURLE_OK && sent > 0;
}

void http_exchange_cancel(struct http_exchange *x)
{
	x->cancelled = true;
	if (!x->client->inside)
		exchange_free(x);
}

/* --- libcurl and the loop --- */

/* The timer that libcurl sets here starts the exchange. */
static bool client_add(struct http_exchange *x)
{
	x->added = curl_multi_add_handle(x->client->multi, x->easy) == CURLM_OK;
	return x->added;
}

/* Ends what libcurl has finished, cancelled or not; then adds or frees what was started or
 * cancelled while libcurl was on the stack. */
static void reap(struct http_client *c)
{
	struct http_exchange *x, *next;
	CURLMsg *m;
	int left;

	while (c->multi && (m = curl_multi_info_read(c->multi, &left))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&x);
		client_end(x, m->data.result);
	}
	for (x = c->exchanges; x; x = next) {
		next = x->next;
		if (x->cancelled) {
			exchange_free(x);
		} else if (!x->added && !client_add(x)) {
			client_end(x, CURLE_OUT_OF_MEMORY);
			next = c->exchanges; /* the callback may have changed the list */
		}
	}
}

static void act(struct http_client *c, curl_socket_t fd, int events)
{
	int running;

	c->inside = true;
	curl_multi_socket_action(c->multi, fd, events, &running);
	c->inside = false;
	reap(c);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct waiting *w = poll->data;
	int bits = status < 0 ? CURL_CSELECT_ERR : 0;

	bits |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
	bits |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
	act(w->client, w->fd, bits);
}

static void on_timer(uv_timer_t *timer)
{
	act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static void on_soon(uv_idle_t *soon)
{
	uv_idle_stop(soon);
	act(soon->data, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long ms, void *data)
{
	struct http_client *c = data;

	uv_timer_stop(&c->timer);
	uv_idle_stop(&c->soon);
	if (ms == 0)
		uv_idle_start(&c->soon, on_soon);
	else if (ms > 0)
		uv_timer_start(&c->timer, on_timer, (uint64_t)ms, 0);
	return 0;
}

static void client_free(struct http_client *c)
{
	free(c->unix_socket);
	free(c->no_proxy);
	free(c->ca);
	free(c->certificate);
	free(c->key);
	free(c);
}

static void handle_gone(struct http_client *c)
{
	if (--c->handles > 0)
		return;
	if (c->on_closed)
		c->on_closed(c->owner);
	client_free(c);
}

static void on_poll_closed(uv_handle_t *handle)
{
	struct waiting *w = handle->data;

	handle_gone(w->client);
	free(w);
}

static struct waiting *wait_new(struct http_client *c, curl_socket_t fd)
{
	struct waiting *w = calloc(1, sizeof(*w));

	if (!w || uv_poll_init_socket(c->loop, &w->poll, fd) < 0) {
		free(w);
		return NULL;
	}
	w->client = c;
	w->fd = fd;
	w->poll.data = w;
	w->at = &c->waits;
	w->next = c->waits;
	if (w->next)
		w->next->at = &w->next;
	c->waits = w;
	c->handles++;
	curl_multi_assign(c->multi, fd, w);
	return w;
}

static void wait_end(struct waiting *w)
{
	*w->at = w->next;
	if (w->next)
		w->next->at = w->at;
	uv_close((uv_handle_t *)&w->poll, on_poll_closed);
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *of_socket)
{
	struct http_client *c = data;
	struct waiting *w = of_socket;
	int events = (what & CURL_POLL_IN ? UV_READABLE : 0) |
		     (what & CURL_POLL_OUT ? UV_WRITABLE : 0);

	if (what == CURL_POLL_REMOVE) {
		if (w) {
			curl_multi_assign(c->multi, fd, NULL);
			wait_end(w);
		}
		return 0;
	}
	if (!w)
		w = wait_new(c, fd);
	if (!w)
		return -1;
	uv_poll_start(&w->poll, events, on_poll);
	return 0;
}

/* Our own exceptions to the proxy, and those of the environment, since the option replaces
 * these. */
static char *no_proxy(void)
{
	const char *theirs = getenv("no_proxy") ?: getenv("NO_PROXY") ?: "";
	char *all;

	if (strcmp(theirs, "*") == 0)
		return strdup(theirs);
	return asprintf(&all, "localhost,127.0.0.1,::1,%s", theirs) < 0 ? NULL : all;
}

/* False: no memory. */
static bool copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

struct http_client *http_client_new(uv_loop_t *loop, const struct http_client_options *o,
				    struct err *e)
{
	struct http_client *c;
	CURLM *multi;

	if (library_load("curl", e) < 0)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return out_of_memory(e), NULL;
	*c = (struct http_client){ .loop = loop,
				   .no_proxy = no_proxy(),
				   .connect_ms = o->connect_ms ? o->connect_ms : CONNECT_MS,
				   .header_max = o->header_max ? o->header_max : HEADER_MAX,
				   .public_only = o->public_only,
				   .loopback_too = o->loopback_too,
				   .own_only = o->own_only,
				   .handles = 2 };
	multi = curl_global_init(CURL_GLOBAL_DEFAULT) == 0 ? curl_multi_init() : NULL;
	if (!multi || !c->no_proxy || !copy_text(&c->unix_socket, o->unix_socket) ||
	    !copy_text(&c->ca, o->ca) || !copy_text(&c->certificate, o->certificate) ||
	    !copy_text(&c->key, o->key)) {
		if (multi)
			curl_multi_cleanup(multi);
		client_free(c);
		return out_of_memory(e), NULL;
	}
	c->multi = multi;
	uv_timer_init(loop, &c->timer);
	uv_idle_init(loop, &c->soon);
	c->timer.data = c->soon.data = c;
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, set_socket);
	curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, c);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(multi, CURLMOPT_TIMERDATA, c);
	curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
			  (long)(o->connections ? o->connections : CONNECTIONS));
	return c;
}

static void on_own_closed(uv_handle_t *handle)
{
	handle_gone(handle->data);
}

void http_client_close(struct http_client *c, void (*on_closed)(void *owner), void *owner)
{
	c->on_closed = on_closed;
	c->owner = owner;
	while (c->exchanges)
		exchange_free(c->exchanges);
	/* libcurl 8.14 now closes sockets without a word, and the loop aborts if it polls such. */
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, NULL);
	while (c->waits)
		wait_end(c->waits);
	curl_multi_cleanup(take_ptr(c->multi));
	uv_close((uv_handle_t *)&c->timer, on_own_closed);
	uv_close((uv_handle_t *)&c->soon, on_own_closed);
}

/* --- one exchange --- */

static bool may_connect(const struct http_client *c, const struct sockaddr *a)
{
	return !c->public_only || (a->sa_family == AF_UNIX && c->unix_socket) ||
	       http_address_public(a) || (c->loopback_too && http_address_loopback(a));
}

/* The address that is checked here is the one that is connected to, so a name can't change its
 * meaning in between. Programs that we start do not inherit the socket. */
static curl_socket_t open_socket(void *data, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct http_exchange *x = data;

	if (!may_connect(x->client, &a->addr)) {
		x->refused = true;
		return CURL_SOCKET_BAD;
	}
	x->fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
	return x->fd;
}

/* Before each request. A connection that another exchange has made was looked at for that. */
static int before_request(void *data, char *ip, char *own_ip, int port, int own_port)
{
	const struct http_peer_tcp tcp = { own_ip, ip, (unsigned)own_port, (unsigned)port };
	struct http_exchange *x = data;

	if (x->client->unix_socket ? x->fd >= 0 && http_peer_check_unix(x->fd, &x->stranger) < 0
				   : http_peer_check_tcp(&tcp, &x->stranger) < 0)
		return CURL_PREREQFUNC_ABORT;
	return CURL_PREREQFUNC_OK;
}

/* Called for each line of a header; an empty line ends it. Headers with status 1xx may come
 * first. */
static size_t on_header(char *p, size_t size, size_t n, void *data)
{
	struct http_exchange *x = data;
	long status = 0;

	x->header_bytes += n;
	if (x->header_bytes > x->client->header_max)
		return 0;
	curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
	if (n <= 2 && status >= 200 && !x->cancelled && !x->headed) {
		x->headed = true;
		if (x->ev->on_head)
			x->ev->on_head(x->owner, x, (int)status);
	}
	return x->cancelled ? 0 : size * n;
}

static size_t on_body(char *p, size_t size, size_t n, void *data)
{
	struct http_exchange *x = data;

	if (!x->cancelled)
		x->ev->on_bytes(x->owner, x, (struct str){ p, n });
	return x->cancelled ? 0 : size * n;
}

struct str http_exchange_header(const struct http_exchange *x, const char *name)
{
	struct curl_header *h;

	return curl_easy_header(x->easy, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK
		     ? str_of(h->value)
		     : STR_NONE;
}

int http_exchange_headers(const struct http_exchange *x, const char *name, struct buf *to,
			  struct err *e)
{
	struct curl_header *h;

	for (size_t i = 0; curl_easy_header(x->easy, name, i, CURLH_HEADER, -1, &h) == CURLHE_OK;
	     i++) {
		if (buf_addf(to, e, "%s%s", i ? ", " : "", h->value) < 0)
			return -1;
	}
	return 0;
}

static bool is_clean(struct str value)
{
	for (size_t i = 0; i < value.n; i++) {
		if ((unsigned char)value.p[i] < ' ' || value.p[i] == 0x7f)
			return false;
	}
	return true;
}

static int add_header(struct http_exchange *x, const struct http_header *f, struct err *e)
{
	autofree char *line = NULL;
	struct curl_slist *list;

	if (!is_clean(f->value))
		return err_set(e, ERR_INVALID, "the header %s has a control character", f->name);
	if (asprintf(&line, "%s: %.*s", f->name, STR_ARG(f->value)) < 0)
		return out_of_memory(e);
	list = curl_slist_append(x->headers, line);
	explicit_bzero(line, strlen(line));
	if (!list)
		return out_of_memory(e);
	x->headers = list;
	return 0;
}

static size_t give_body(char *to, size_t size, size_t n, void *data)
{
	struct http_exchange *x = data;
	size_t left = x->body_n - x->body_at, take = left < size * n ? left : size * n;

	memcpy(to, x->body + x->body_at, take);
	x->body_at += take;
	return take;
}

/* If a reused connection ends without an answer, libcurl sends the request again on another one.
 * This forbids it once a part of the body was sent, since the request may have taken effect. */
static int give_body_again(void *data, curl_off_t offset, int origin)
{
	struct http_exchange *x = data;

	return x->body_at == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static int set_body(struct http_exchange *x, struct str body, struct err *e)
{
	x->body = malloc(body.n + 1);
	if (!x->body)
		return out_of_memory(e);
	memcpy(x->body, body.p, body.n);
	x->body_n = body.n;
	curl_easy_setopt(x->easy, CURLOPT_POST, 1L);
	curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
	curl_easy_setopt(x->easy, CURLOPT_READFUNCTION, give_body);
	curl_easy_setopt(x->easy, CURLOPT_READDATA, x);
	curl_easy_setopt(x->easy, CURLOPT_SEEKFUNCTION, give_body_again);
	curl_easy_setopt(x->easy, CURLOPT_SEEKDATA, x);
	return 0;
}

static size_t give_piece(char *to, size_t size, size_t n, void *data)
{
	struct http_exchange *x = data;
	size_t given = x->cancelled ? SIZE_MAX : x->give(x->owner, to, size * n);

	return given == SIZE_MAX ? CURL_READFUNC_ABORT : given;
}

static void set_giver(struct http_exchange *x, const struct http_spec *spec)
{
	x->give = spec->give;
	curl_easy_setopt(x->easy, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(x->easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)GIVE_BYTES);
	curl_easy_setopt(x->easy, CURLOPT_READFUNCTION, give_piece);
	curl_easy_setopt(x->easy, CURLOPT_READDATA, x);
}

static void set_tls(struct http_exchange *x)
{
	const struct http_client *c = x->client;

	curl_easy_setopt(x->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (c->ca) {
		curl_easy_setopt(x->easy, CURLOPT_CAINFO, c->ca);
		curl_easy_setopt(x->easy, CURLOPT_CAPATH, NULL);
	}
	if (c->certificate)
		curl_easy_setopt(x->easy, CURLOPT_SSLCERT, c->certificate);
	if (c->key)
		curl_easy_setopt(x->easy, CURLOPT_SSLKEY, c->key);
}

static int set_up(struct http_exchange *x, const struct http_spec *spec, struct err *e)
{
	static const struct http_header no_expect = { "Expect", STR_LIT("") };
	struct http_client *c = x->client;

	for (size_t i = 0; i < spec->n_headers; i++) {
		if (add_header(x, &spec->headers[i], e) < 0)
			return -1;
	}
	if (add_header(x, &no_expect, e) < 0 || (spec->body.p && set_body(x, spec->body, e) < 0))
		return -1;
	if (spec->give)
		set_giver(x, spec);
	curl_easy_setopt(x->easy, CURLOPT_PRIVATE, x);
	curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, spec->method);
	curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers);
	curl_easy_setopt(x->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(x->easy, CURLOPT_NOSIGNAL, 1L);
	/* so that a cancel does not wait for a silent name server */
	curl_easy_setopt(x->easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(x->easy, CURLOPT_NOPROXY, c->no_proxy);
	curl_easy_setopt(x->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)c->connect_ms);
	curl_easy_setopt(x->easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(x->easy, CURLOPT_HEADERDATA, x);
	curl_easy_setopt(x->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(x->easy, CURLOPT_WRITEDATA, x);
	curl_easy_setopt(x->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(x->easy, CURLOPT_OPENSOCKETDATA, x);
	curl_easy_setopt(x->easy, CURLOPT_MAXAGE_CONN, (long)IDLE_S);
	curl_easy_setopt(x->easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(x->easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
	if (c->unix_socket)
		curl_easy_setopt(x->easy, CURLOPT_UNIX_SOCKET_PATH, c->unix_socket);
	if (c->public_only || c->own_only)
		curl_easy_setopt(x->easy, CURLOPT_PROXY, "");
	if (c->own_only) {
		curl_easy_setopt(x->easy, CURLOPT_PREREQFUNCTION, before_request);
		curl_easy_setopt(x->easy, CURLOPT_PREREQDATA, x);
	}
	set_tls(x);
	curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, (long)spec->whole_ms);
	if (spec->idle_ms) {
		curl_easy_setopt(x->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
		curl_easy_setopt(x->easy, CURLOPT_LOW_SPEED_TIME,
				 (long)(spec->idle_ms + 999) / 1000);
	}
	if (curl_easy_setopt(x->easy, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK ||
	    curl_easy_setopt(x->easy, CURLOPT_URL, spec->url) != CURLE_OK)
		return err_set(e, ERR_INVALID, "not a URL of http or https");
	return 0;
}

struct http_exchange *http_exchange_start(struct http_client *c, const struct http_spec *spec,
					  const struct http_exchange_events *ev, void *owner,
					  struct err *e)
{
	AUTO(exchange_free) struct http_exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return out_of_memory(e), NULL;
	*x = (struct http_exchange){
		.client = c, .ev = ev, .owner = owner, .fd = -1, .easy = curl_easy_init()
	};
	if (!x->easy)
		return out_of_memory(e), NULL;
	if (http_url_check(spec->url, e) < 0 || set_up(x, spec, e) < 0)
		return NULL;
	if (!c->inside && !client_add(x))
		return out_of_memory(e), NULL;
	x->next = c->exchanges;
	x->at = &c->exchanges;
	if (x->next)
		x->next->at = &x->next;
	c->exchanges = x;
	x->listed = true;
	return take_ptr(x);
}
