/* mcp/connect/connect.h without memory: whatever allocation fails, there is an error, an end,
 * and nothing is left. The peers are programs that end, and an address at which nobody is. And
 * what authorizes requests, and closes the link while it is asked. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "alloc_fail.h"
#include "mcp/connect/blocking.h"
#include "mcp/connect/connect.h"
#include "test.h"

struct program_sandbox {
	uv_loop_t loop;
	struct mcp_link *link;
	bool over, closed;
	struct err why;
};

static void on_closed(void *owner)
{
	((struct program_sandbox *)owner)->closed = true;
}

static void on_over(void *owner, const struct err *e)
{
	struct program_sandbox *p = owner;

	p->over = true;
	p->why = *e;
	mcp_link_close(p->link, on_closed, p);
}

static const struct mcp_client_handler handler = { .over = on_over };

/* From the beginning to the end; true where there was one of the conversation. */
static bool run(struct program_sandbox *p, const struct mcp_target *t)
{
	const struct mcp_client_options o = {
		.name = "test", .version = "1", .handler = &handler, .owner = p
	};
	struct err e = ERR_INIT;
	bool begun;

	*p = (struct program_sandbox){ .over = false };
	uv_loop_init(&p->loop);
	p->link = mcp_connect(&p->loop, t, &o, &e);
	begun = p->link;
	assert_true(begun || e.code != ERR_NONE);
	uv_run(&p->loop, UV_RUN_DEFAULT);
	assert_int_equal(p->over, begun);
	assert_int_equal(p->closed, begun);
	assert_int_equal(uv_loop_close(&p->loop), 0);
	return begun;
}

/* start_ms ends what waits for a message that there was no memory for. */
static void each_allocation(const struct mcp_target *t, enum err_code code)
{
	struct mcp_target patient = *t;
	struct program_sandbox p;
	unsigned n = 0;

	while (alloc_fail_next(&n))
		run(&p, t);
	patient.start_ms = 0; /* with memory it is the peer's word that counts, when it comes */
	assert_true(run(&p, &patient));
	assert_int_equal(p.why.code, code);
}

static void a_program(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c", "exit 3", NULL };
	static const char *const env[] = { "A=B", NULL };

	each_allocation(
		&(struct mcp_target){
			.argv = argv, .env = env, .cwd = "/", .start_ms = 200, .stop_ms = 50 },
		ERR_TRANSPORT);
}

static void an_address(void **state)
{
	static const struct http_header headers[] = { { "X-Test", STR_LIT("y") } };
	struct mcp_target t = {
		.url = "http://127.0.0.1:1/mcp", .headers = headers, .headers_n = 1, .start_ms = 200
	};

	each_allocation(&t, ERR_TRANSPORT);
	t.known = (struct mcp_found){ MCP_WIRE_SSE, MCP_LEGACY };
	each_allocation(&t, ERR_TRANSPORT);
}

static void targets_that_are_none(void **state)
{
	static const char *const argv[] = { "/bin/true", NULL }, *const none[] = { NULL };
	static const struct mcp_target targets[] = {
		{ .argv = NULL },      { .argv = argv, .url = "http://h/" },
		{ .argv = none },      { .url = "ftp://h/" },
		{ .url = "nonsense" }, { .argv = argv, .version = "1999-01-01" },
	};

	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		struct program_sandbox p;

		assert_false(run(&p, &targets[i]));
	}
}

/* --- what authorizes --- */

/* A server with one answer for all that is asked of it on a connection, which it closes then. */
struct web {
	uv_tcp_t tcp, peer;
	const char *answer;
	char url[64];
	char room[4096];
};

static void on_room(uv_handle_t *handle, size_t n, uv_buf_t *ret)
{
	struct web *w = handle->data;

	*ret = uv_buf_init(w->room, sizeof(w->room));
}

static void on_asked(uv_stream_t *peer, ssize_t n, const uv_buf_t *buf)
{
	struct web *w = peer->data;
	uv_buf_t out = uv_buf_init((char *)(uintptr_t)w->answer, (unsigned)strlen(w->answer));

	if (n > 0)
		assert_true(uv_try_write(peer, &out, 1) == (int)out.len);
	if (!uv_is_closing((uv_handle_t *)peer))
		uv_close((uv_handle_t *)peer, NULL);
}

/* One connection is all that there will be. */
static void on_connection(uv_stream_t *tcp, int status)
{
	struct web *w = tcp->data;

	uv_tcp_init(tcp->loop, &w->peer);
	w->peer.data = w;
	assert_int_equal(uv_accept(tcp, (uv_stream_t *)&w->peer), 0);
	uv_read_start((uv_stream_t *)&w->peer, on_room, on_asked);
	uv_close((uv_handle_t *)tcp, NULL);
}

static void serve(struct web *w, uv_loop_t *loop, const char *answer)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int n = sizeof(a);

	w->answer = answer;
	uv_tcp_init(loop, &w->tcp);
	w->tcp.data = w;
	assert_int_equal(uv_tcp_bind(&w->tcp, (struct sockaddr *)&a, 0), 0);
	assert_int_equal(uv_listen((uv_stream_t *)&w->tcp, 1, on_connection), 0);
	assert_int_equal(uv_tcp_getsockname(&w->tcp, (struct sockaddr *)&a, &n), 0);
	snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%d/mcp", ntohs(a.sin_port));
}

/* Counts what it is asked, and closes the link at one kind of question. */
enum question { HEADERS, REFUSED, ANSWERED, QUESTIONS };

struct closer {
	struct mcp_auth auth; /* first */
	struct program_sandbox *p;
	enum question at;
	unsigned asked[QUESTIONS], cancelled;
};

static bool closes(struct mcp_auth *a, enum question what)
{
	struct closer *c = (struct closer *)a;

	c->asked[what]++;
	if (c->at != what)
		return false;
	mcp_link_close(c->p->link, on_closed, c->p);
	return true;
}

static void headers(struct mcp_auth *a, struct mcp_auth_request *ask, const char *method,
		    const char *url)
{
	if (!closes(a, HEADERS))
		ask->done(ask->owner, NULL, 0, NULL);
}

static void refused(struct mcp_auth *a, struct mcp_auth_request *ask, int status,
		    struct str challenge, struct str nonce)
{
	const struct err no = { ERR_UNAUTHORIZED, "no" };

	if (!closes(a, REFUSED))
		ask->done(ask->owner, NULL, 0, &no);
}

static void answered(struct mcp_auth *a, struct str nonce)
{
	closes(a, ANSWERED);
}

static void cancel(struct mcp_auth *a, struct mcp_auth_request *ask)
{
	((struct closer *)a)->cancelled++;
}

static const struct mcp_auth_ops closer_ops = { headers, refused, answered, cancel };

#define ANSWER(status, head, body) "HTTP/1.1 " status "\r\nConnection: close\r\n" head "\r\n" body

static const struct auth_row {
	const char *name, *answer;
	enum question at; /* which it closes the link */
	unsigned asked[QUESTIONS], cancelled;
} auth_rows[] = {
	{ "headers", "", HEADERS, { 1, 0, 0 }, 1 },
	{ "a refusal", ANSWER("401 No", "", ""), REFUSED, { 1, 1, 0 }, 1 },
	{ "an answer",
	  ANSWER("200 OK", "Content-Type: application/json\r\n", "{}"),
	  ANSWERED,
	  { 1, 0, 1 },
	  0 },
	{ "events",
	  ANSWER("200 OK", "Content-Type: text/event-stream\r\n", ": x\n\n"),
	  ANSWERED,
	  { 1, 0, 1 },
	  0 },
	{ "a refusal that is not dealt with", ANSWER("401 No", "", ""), QUESTIONS, { 1, 1, 0 }, 0 },
	/* nothing of the server's may have said so */
	{ "a page",
	  ANSWER("200 OK", "Content-Type: text/html\r\n", "<p>"),
	  QUESTIONS,
	  { 1, 0, 0 },
	  0 },
	{ "no type", ANSWER("200 OK", "", "{}"), QUESTIONS, { 1, 0, 0 }, 0 },
	{ "taken, and no answer", ANSWER("202 OK", "", ""), QUESTIONS, { 1, 0, 0 }, 0 },
	{ "another success",
	  ANSWER("206 OK", "Content-Type: application/json\r\n", "{}"),
	  QUESTIONS,
	  { 1, 0, 0 },
	  0 },
};

static void ask_auth(const struct auth_row *row, enum mcp_wire wire)
{
	struct program_sandbox p = { .over = false };
	struct closer c = { .auth = { &closer_ops }, .p = &p, .at = row->at };
	const struct mcp_client_options o = {
		.name = "test", .version = "1", .handler = &handler, .owner = &p
	};
	struct mcp_target t = { .auth = &c.auth, .only = { .wire = wire, .era = MCP_LEGACY } };
	struct web w;
	struct err e;

	uv_loop_init(&p.loop);
	serve(&w, &p.loop, row->answer);
	t.url = w.url;
	p.link = mcp_connect(&p.loop, &t, &o, &e);
	assert_non_null(p.link);
	while (!p.closed)
		uv_run(&p.loop, UV_RUN_ONCE);
	if (!uv_is_closing((uv_handle_t *)&w.tcp))
		uv_close((uv_handle_t *)&w.tcp, NULL);
	uv_run(&p.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&p.loop), 0);
	for (int i = 0; i < QUESTIONS; i++)
		ROW_CHECK(c.asked[i] == row->asked[i], row->name);
	ROW_CHECK(c.cancelled == row->cancelled, row->name);
	ROW_CHECK(p.over == (row->at == QUESTIONS), row->name);
}

static void what_authorizes_may_close_the_link(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(auth_rows); i++)
		ask_auth(&auth_rows[i], MCP_WIRE_HTTP);
	for (size_t i = 0; i < 2; i++)
		ask_auth(&auth_rows[i], MCP_WIRE_SSE);
}

/* --- without a loop --- */

/* A server that takes part in the beginning, and then does what is said. */
static struct mcp_sync *connect_to_script(const char *then)
{
	static const char begin[] =
		"read -r a; printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":"
		"\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{}}}\\n' "
		"\"$(echo \"$a\" | sed 's/.*\"id\":\\([0-9]*\\).*/\\1/')\"; read -r b; ";
	char script[sizeof(begin) + 128];
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	const struct mcp_target t = { .argv = argv, .only = { MCP_WIRE_STDIO, MCP_LEGACY } };
	const struct mcp_client_options o = { .name = "test", .version = "1" };
	struct err e = ERR_INIT;
	struct mcp_sync *s;

	snprintf(script, sizeof(script), "%s%s", begin, then);
	s = mcp_sync_connect(&t, &o, &e);
	if (!s)
		fail_msg("%s", e.msg);
	return s;
}

/* Returns long before the time that it was given. The server ends when it is told to: one that
 * ends by itself may be gone before there is a conversation to wait for. */
static void waiting_ends_with_the_conversation(void **state)
{
	char folder[] = "/tmp/unit-test-XXXXXX", fifo[64], then[128];
	struct err e = ERR_INIT;
	struct mcp_sync *s;

	assert_non_null(mkdtemp(folder));
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	snprintf(then, sizeof(then), "cat %s; exit 0", fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	s = connect_to_script(then);
	close(open(fifo, O_WRONLY));
	unlink(fifo);
	rmdir(folder);
	assert_int_equal(mcp_sync_wait(s, 24 * 3600 * 1000, &e), -1);
	assert_int_equal(e.code, ERR_TRANSPORT);
	assert_int_equal(mcp_sync_wait(s, 24 * 3600 * 1000, &e), -1);
	mcp_sync_close(s);
}

/* Also where nothing else ever comes. */
static void waiting_ends_in_time(void **state)
{
	struct mcp_sync *s = connect_to_script("cat >/dev/null");
	struct err e = ERR_INIT;

	for (unsigned ms = 0; ms < 3; ms++)
		assert_int_equal(mcp_sync_wait(s, ms, &e), 0);
	mcp_sync_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_that_are_none),
		cmocka_unit_test(a_program),
		cmocka_unit_test(an_address),
		cmocka_unit_test(what_authorizes_may_close_the_link),
		cmocka_unit_test(waiting_ends_with_the_conversation),
		cmocka_unit_test(waiting_ends_in_time),
	};

	return alloc_fail_spare_uv() ?: cmocka_run_group_tests(tests, NULL, NULL);
}
