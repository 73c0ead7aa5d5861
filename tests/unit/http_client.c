/* http/client/client.h: what may be connected to, and how much comes back. The server is in the
 * same loop and says one text to whoever connects. */
#include <unistd.h>

#include "http/client/client.h"
#include "test.h"

struct program_sandbox {
	uv_loop_t loop;
	uv_tcp_t server, peer;
	const char *says;
	char url[64];
	struct http_client *client;
	bool ended;
	int status;
	size_t bytes;
	struct err err;
};

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
	static char room[4096];

	*ret = uv_buf_init(room, sizeof(room));
}

static void on_asked(uv_stream_t *peer, ssize_t n, const uv_buf_t *b)
{
	struct program_sandbox *p = peer->data;
	uv_buf_t out = uv_buf_init((char *)p->says, (unsigned)strlen(p->says));

	uv_read_stop(peer);
	if (n > 0)
		uv_try_write(peer, &out, 1);
	uv_close((uv_handle_t *)peer, NULL);
}

static void on_peer(uv_stream_t *server, int status)
{
	struct program_sandbox *p = server->data;

	uv_tcp_init(&p->loop, &p->peer);
	p->peer.data = p;
	assert_int_equal(uv_accept(server, (uv_stream_t *)&p->peer), 0);
	uv_read_start((uv_stream_t *)&p->peer, on_alloc, on_asked);
}

static void open_place(struct program_sandbox *p, const struct http_client_options *o)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int n = sizeof(a);
	struct err e;

	uv_loop_init(&p->loop);
	uv_tcp_init(&p->loop, &p->server);
	p->server.data = p;
	assert_int_equal(uv_tcp_bind(&p->server, (struct sockaddr *)&a, 0), 0);
	assert_int_equal(uv_listen((uv_stream_t *)&p->server, 1, on_peer), 0);
	uv_tcp_getsockname(&p->server, (struct sockaddr *)&a, &n);
	uv_unref((uv_handle_t *)&p->server);
	snprintf(p->url, sizeof(p->url), "http://127.0.0.1:%d/", ntohs(a.sin_port));
	p->client = http_client_new(&p->loop, o, &e);
	assert_non_null(p->client);
}

static void on_head(void *owner, struct http_exchange *x, int status)
{
	((struct program_sandbox *)owner)->status = status;
}

static void on_bytes(void *owner, struct http_exchange *x, struct str bytes)
{
	((struct program_sandbox *)owner)->bytes += bytes.n;
}

static void on_end(void *owner, struct http_exchange *x, const struct err *e)
{
	struct program_sandbox *p = owner;

	p->ended = true;
	p->err = e ? *e : ERR_INIT;
	http_client_close(p->client, NULL, NULL);
}

static void ask(struct program_sandbox *p, const char *url)
{
	static const struct http_exchange_events events = { on_head, on_bytes, on_end };
	struct http_spec spec = { .method = "GET", .url = url };
	struct err e;

	assert_non_null(http_exchange_start(p->client, &spec, &events, p, &e));
	uv_run(&p->loop, UV_RUN_DEFAULT);
	assert_true(p->ended);
	uv_close((uv_handle_t *)&p->server, NULL);
	uv_run(&p->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&p->loop), 0);
}

#define FINE "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

static void anywhere_by_itself(void **state)
{
	struct program_sandbox p = { .says = FINE };

	open_place(&p, &(struct http_client_options){ .connections = 1 });
	ask(&p, p.url);
	assert_int_equal(p.err.code, ERR_NONE);
	assert_int_equal(p.status, 200);
	assert_int_equal(p.bytes, 2);
}

static void only_public(void **state)
{
	struct program_sandbox p = { .says = FINE };

	open_place(&p, &(struct http_client_options){ .public_only = true });
	ask(&p, p.url);
	assert_int_equal(p.err.code, ERR_NOT_PUBLIC);
}

static void only_public_and_loopback(void **state)
{
	struct program_sandbox p = { .says = FINE };

	open_place(&p, &(struct http_client_options){ .public_only = true, .loopback_too = true });
	ask(&p, p.url);
	assert_int_equal(p.err.code, ERR_NONE);
	assert_int_equal(p.status, 200);
}

/* However the address is written; none of these is asked, so nobody has to be there. */
static void other_ways_to_say_it(void **state)
{
	static const char *const urls[] = {
		"http://0x7f000001/",
		"http://2130706433/",
		"http://0177.0.0.1/",
		"http://localhost/",
		"http://[::1]/",
		"http://[::ffff:127.0.0.1]/",
		"http://0.0.0.0/",
		"http://169.254.169.254/",
		"http://10.0.0.1/",
		"http://[fd00:ec2::254]/",
		"http://[64:ff9b::a9fe:a9fe]/",
	};

	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct program_sandbox p = { .says = FINE };

		open_place(&p, &(struct http_client_options){ .public_only = true });
		ask(&p, urls[i]);
		ROW_CHECK(p.err.code == ERR_NOT_PUBLIC, urls[i]);
	}
}

/* A proxy would connect to whatever it is asked to. */
static void no_proxy(void **state)
{
	struct program_sandbox p = { .says = FINE };

	open_place(&p, &(struct http_client_options){ .public_only = true });
	setenv("http_proxy", p.url, 1);
	ask(&p, "http://10.0.0.1/");
	unsetenv("http_proxy");
	assert_int_equal(p.err.code, ERR_NOT_PUBLIC);
}

static void headers_have_a_bound(void **state)
{
	char says[2048] = "HTTP/1.1 200 OK\r\nX: ";
	struct program_sandbox p = { .says = says };

	memset(says + strlen(says), 'x', 1500);
	strcat(says, "\r\nContent-Length: 0\r\n\r\n");
	open_place(&p, &(struct http_client_options){ .header_max = 1024 });
	ask(&p, p.url);
	assert_int_equal(p.err.code, ERR_TOO_LARGE);
	assert_int_equal(p.status, 0);
}

/* Of the callbacks each may start another, also where libcurl is on the stack. */
static void on_bytes_more(void *owner, struct http_exchange *x, struct str bytes)
{
	static const struct http_exchange_events events = { NULL, on_bytes, on_end };
	struct program_sandbox *p = owner;
	struct http_spec spec = { .method = "GET", .url = p->url };
	struct err e;

	assert_non_null(http_exchange_start(p->client, &spec, &events, p, &e));
	http_exchange_cancel(http_exchange_start(p->client, &spec, &events, p, &e));
}

static void on_end_first(void *owner, struct http_exchange *x, const struct err *e)
{
	assert_null(e);
}

static void one_starts_another(void **state)
{
	static const struct http_exchange_events events = { NULL, on_bytes_more, on_end_first };
	struct program_sandbox p = { .says = FINE };
	struct http_spec spec = { .method = "GET" };
	struct err e;

	open_place(&p, &(struct http_client_options){ .connections = 4 });
	spec.url = p.url;
	assert_non_null(http_exchange_start(p.client, &spec, &events, &p, &e));
	uv_run(&p.loop, UV_RUN_DEFAULT);
	assert_true(p.ended);
	assert_int_equal(p.err.code, ERR_NONE);
	assert_int_equal(p.bytes, 2);
	uv_close((uv_handle_t *)&p.server, NULL);
	uv_run(&p.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&p.loop), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(anywhere_by_itself),
		cmocka_unit_test(only_public),
		cmocka_unit_test(only_public_and_loopback),
		cmocka_unit_test(other_ways_to_say_it),
		cmocka_unit_test(no_proxy),
		cmocka_unit_test(headers_have_a_bound),
		cmocka_unit_test(one_starts_another),
	};

	unsetenv("http_proxy");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
