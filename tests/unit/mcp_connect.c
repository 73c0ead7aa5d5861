/* mcp/transport_connect.h without memory: whatever allocation fails, there is an error, an end, and nothing
 * is left. The peers are programs that end, and an address at which nobody is. */
#include <arpa/inet.h>

#include "alloc_fail.h"
#include "mcp/transport_connect.h"
#include "test.h"

struct place {
	uv_loop_t loop;
	struct mcp_link *link;
	bool over, closed;
	struct err why;
};

static void on_closed(void *owner)
{
	((struct place *)owner)->closed = true;
}

static void on_over(void *owner, const struct err *e)
{
	struct place *p = owner;

	p->over = true;
	p->why = *e;
	mcp_link_close(p->link, on_closed, p);
}

static const struct mcp_client_handler handler = { .over = on_over };

/* From the beginning to the end; true where there was one of the conversation. */
static bool run(struct place *p, const struct mcp_target *t)
{
	const struct mcp_client_options o = {
		.name = "test", .version = "1", .handler = &handler, .owner = p
	};
	struct err e = ERR_INIT;
	bool begun;

	*p = (struct place){ .over = false };
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
	struct place p;
	unsigned n = 0;

	while (alloc_fail_next(&n))
		run(&p, t);
	assert_true(run(&p, t));
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
		struct place p;

		assert_false(run(&p, &targets[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_that_are_none),
		cmocka_unit_test(a_program),
		cmocka_unit_test(an_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
