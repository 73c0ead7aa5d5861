/* Calls that wait for a module and are refused: what those that are told may do meanwhile. */
#include "test.h"

#include "modules/internal.h"

enum { CALLS = 4 };

/* One module of a file, with calls that wait for its connection. */
struct stage {
	uv_loop_t loop;
	struct upstreams all;
	struct upstream *u;
	struct caller {
		struct upstream_call out;
		struct stage *of;
		unsigned told; /* how often */
		int cancels; /* index of a call that it cancels when it is told, or -1 */
		bool asks_again, drops;
	} calls[CALLS];
};

static void caller_wait(struct caller *c)
{
	struct upstream *u = c->of->u;

	c->out.of = u;
	c->out.next = NULL;
	*u->end = &c->out;
	u->end = &c->out.next;
}

static void on_done(void *owner, const struct mcp_answer *a)
{
	struct caller *c = owner;
	struct err e;

	assert_int_equal(a->e->code, ERR_CANCELLED);
	c->told++;
	if (c->cancels >= 0)
		upstream_call_cancel(&c->of->calls[c->cancels].out);
	if (c->asks_again)
		caller_wait(c);
	err_set(&e, ERR_CANCELLED, "again");
	if (c->drops)
		upstream_drop(c->of->u, UPSTREAM_CLOSED, &e);
}

static void stage_begin(struct stage *s)
{
	static const char file[] = "{ \"mcpServers\": { \"one\": { \"command\": \"true\" } } }";
	struct err e = ERR_INIT;
	struct config *c = config_parse(str_of(file), "c", &e);

	assert_non_null(c);
	*s = (struct stage){ .all = { .loop = &s->loop, .config = c } };
	assert_int_equal(uv_loop_init(&s->loop), 0);
	uv_timer_init(&s->loop, &s->all.soon);
	s->u = upstream_new(&s->all, c, &config_file(c)->mcp_servers.p[0], &e);
	assert_non_null(s->u);
	for (int i = 0; i < CALLS; i++) {
		s->calls[i] = (struct caller){ .of = s, .cancels = -1 };
		s->calls[i].out.on_done = on_done;
		s->calls[i].out.owner = &s->calls[i];
		caller_wait(&s->calls[i]);
	}
}

/* The module is no longer in the file, so it is freed when its last call has ended. */
static void stage_leave(struct stage *s)
{
	s->all.gone = s->u;
	s->u->is_gone = true;
}

static void stage_drop(struct stage *s)
{
	struct err e;

	err_set(&e, ERR_CANCELLED, "the module is another now");
	upstream_drop(s->u, UPSTREAM_CLOSED, &e);
}

static void stage_end(struct stage *s)
{
	if (!s->u->is_gone)
		upstream_free(s->u);
	uv_close((uv_handle_t *)&s->all.soon, NULL);
	uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(s->all.open, 0);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	config_unref(s->all.config);
}

static void stage_told(const struct stage *s, unsigned a, unsigned b, unsigned c, unsigned d)
{
	assert_int_equal(s->calls[0].told, a);
	assert_int_equal(s->calls[1].told, b);
	assert_int_equal(s->calls[2].told, c);
	assert_int_equal(s->calls[3].told, d);
}

/* The next, one behind it, and the last. */
static void test_one_cancels_another(void **state)
{
	for (int gone = 0; gone < 2; gone++) {
		for (int i = 1; i < CALLS; i++) {
			struct stage s;

			stage_begin(&s);
			s.calls[0].cancels = i;
			if (gone)
				stage_leave(&s);
			stage_drop(&s);
			stage_told(&s, 1, i != 1, i != 2, i != 3);
			stage_end(&s);
		}
	}
}

/* The call that comes meanwhile waits, and is not refused with the others. */
static void test_one_calls_again(void **state)
{
	struct stage s;

	stage_begin(&s);
	s.calls[1].asks_again = true;
	s.calls[2].cancels = 3;
	stage_drop(&s);
	stage_told(&s, 1, 1, 1, 0);
	assert_ptr_equal(s.u->waiting, &s.calls[1].out);
	upstream_call_cancel(&s.calls[1].out);
	assert_null(s.u->waiting);
	assert_ptr_equal(s.u->end, &s.u->waiting);
	stage_end(&s);
}

static void test_one_drops_it_again(void **state)
{
	for (int gone = 0; gone < 2; gone++) {
		struct stage s;

		stage_begin(&s);
		s.calls[0].drops = s.calls[1].drops = true;
		s.calls[2].cancels = 3;
		if (gone)
			stage_leave(&s);
		stage_drop(&s);
		stage_told(&s, 1, 1, 1, 0);
		stage_end(&s);
	}
}

/* In any order, with others that stay. */
static void test_cancelled_before(void **state)
{
	static const int order[] = { 3, 0, 2 };
	struct stage s;

	stage_begin(&s);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		upstream_call_cancel(&s.calls[order[i]].out);
	assert_ptr_equal(s.u->end, &s.calls[1].out.next);
	stage_drop(&s);
	stage_told(&s, 0, 1, 0, 0);
	stage_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_cancels_another),
		cmocka_unit_test(test_one_calls_again),
		cmocka_unit_test(test_one_drops_it_again),
		cmocka_unit_test(test_cancelled_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
