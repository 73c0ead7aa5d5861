/* Requests for approval: what an answer lets go and what it does not, and that all of it is so
 * after the hub has ended or was killed at any point. */
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask/approval.h"
#include "base/clock.h"

static char dir[64], path[128];
static uv_loop_t loop;
static struct store *store;
static struct approvals *all;
static unsigned changes;

static void on_change(void *data, const struct ask *a)
{
	changes++;
}

static void begin_with(struct approvals_options o)
{
	struct err e = ERR_INIT;

	assert_int_equal(uv_loop_init(&loop), 0);
	store = store_open(path, &e);
	assert_non_null(store);
	o.asks.on_change = on_change;
	all = approvals_new(&loop, store, &o, &e);
	if (!all)
		fail_msg("%s", e.msg);
}

static void begin(void)
{
	begin_with((struct approvals_options){ 0 });
}

static void end(void)
{
	approvals_free(all);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	store_close(store);
}

static void again(void)
{
	end();
	begin();
}

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/unit-approval-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/registry.db", dir);
	changes = 0;
	begin();
	return 0;
}

static int teardown(void **state)
{
	end();
	return test_remove_folder(dir);
}

/* ---- who asks and answers ------------------------------------------------------------------ */

struct caller {
	struct approval_wait w;
	int ended; /* 1: it goes, -1: denied */
	int asked; /* as approval_ask() returned */
	enum err_code code;
	char msg[512], id[64];
};

static void on_end(void *data, const struct err *e)
{
	struct caller *c = data;

	assert_int_equal(c->ended, 0);
	c->ended = e ? -1 : 1;
	if (e)
		snprintf(c->msg, sizeof(c->msg), "%s", e->msg);
	c->code = e ? e->code : ERR_NONE;
}

static struct approval_ask push(void)
{
	return (struct approval_ask){
		.principal = STR_LIT("key:ci"),
		.action = STR_LIT("sandbox.exec"),
		.target = STR_LIT("sbx-1"),
		.digest = STR_LIT("d1"),
		.sandbox = 7,
		.arguments =
			STR_LIT("{\"sandbox\":\"sbx-1\",\"command\":\"git push one\",\"n\":[1,2]}"),
		.conversation = STR_LIT("talk"),
		.rule = STR_LIT("rule pushes"),
	};
}

static void ask(struct caller *c, struct approval_ask q)
{
	const struct approval *a = NULL;
	struct err e = ERR_INIT;

	*c = (struct caller){ .w = { .on_end = on_end, .data = c } };
	c->asked = approval_ask(all, &q, &c->w, &a, &e);
	c->code = e.code;
	if (c->asked >= 0)
		memcpy(c->id, a->ask.id.p, a->ask.id.n + 1);
}

static enum err_code answer_by(const char *id, enum approval_state to, enum approval_scope scope,
			       const char *pattern, struct err *e)
{
	*e = (struct err){ 0 };
	return approval_answer(all,
			       &(struct approval_answer){ .id = str_of(id),
							  .to = to,
							  .scope = scope,
							  .pattern = str_of(pattern),
							  .who = STR_LIT("ada"),
							  .surface = STR_LIT("rest") },
			       e) < 0
		     ? e->code
		     : ERR_NONE;
}

static enum err_code answer(const char *id, enum approval_state to)
{
	struct err e;

	return answer_by(id, to, APPROVAL_ONCE, NULL, &e);
}

static enum approval_state state_of(const char *id)
{
	struct err e;
	const struct approval *a = approval_find(all, str_of(id), &e);

	assert_non_null(a);
	return a->state;
}

/* ---- one call ------------------------------------------------------------------------------ */

static void test_once(void **state)
{
	struct caller a, b;

	ask(&a, push());
	assert_int_equal(a.asked, 0);
	assert_int_equal(answer(a.id, APPROVAL_APPROVED), ERR_NONE);
	assert_int_equal(a.ended, 1);
	ask(&b, push());
	assert_int_equal(b.asked, 0);
	assert_string_not_equal(a.id, b.id);
	assert_int_equal(answer(b.id, APPROVAL_DENIED), ERR_NONE);
	assert_int_equal(b.ended, -1);
	assert_int_equal(b.code, ERR_DENIED);
	assert_non_null(strstr(b.msg, "ada"));
	assert_int_equal(changes, 4);
}

/* Equal calls at once are two calls: each needs its own answer. */
static void test_two_at_once(void **state)
{
	struct caller a, b;

	ask(&a, push());
	ask(&b, push());
	assert_string_not_equal(a.id, b.id);
	assert_int_equal(answer(b.id, APPROVAL_APPROVED), ERR_NONE);
	assert_int_equal(a.ended, 0);
	assert_int_equal(b.ended, 1);
	approval_leave(&a.w, false);
}

static void test_first_answer_wins(void **state)
{
	struct caller a;
	struct err e;

	ask(&a, push());
	assert_int_equal(answer(a.id, APPROVAL_DENIED), ERR_NONE);
	assert_int_equal(answer_by(a.id, APPROVAL_APPROVED, APPROVAL_ONCE, NULL, &e), ERR_ANSWERED);
	assert_non_null(strstr(e.msg, "was denied by ada over rest at 20"));
	assert_int_equal(state_of(a.id), APPROVAL_DENIED);
	assert_int_equal(a.ended, -1);
	assert_int_equal(answer("apr-none", APPROVAL_DENIED), ERR_APPROVAL_NOT_FOUND);
}

static void test_cancelled(void **state)
{
	struct caller a, b;

	ask(&a, push());
	approval_leave(&a.w, false);
	approval_leave(&a.w, false);
	assert_int_equal(state_of(a.id), APPROVAL_VOID);
	assert_int_equal(answer(a.id, APPROVAL_APPROVED), ERR_ANSWERED);
	ask(&b, push());
	assert_int_equal(b.asked, 0);
	approval_leave(&b.w, true);
	assert_int_equal(state_of(b.id), APPROVAL_PENDING);
	ask(&a, push());
	assert_string_equal(a.id, b.id);
	approval_leave(&a.w, false);
}

/* ---- another call is another request ------------------------------------------------------- */

static void test_changed(void **state)
{
	struct approval_ask other[] = { push(), push(), push(), push() };
	struct caller a, b;

	other[0].digest = STR_LIT("d2");
	other[1].sandbox = 8; /* another one of that name */
	other[2].principal = STR_LIT("key:other");
	other[3].action = STR_LIT("sandbox.fork");
	ask(&a, push());
	approval_leave(&a.w, true);
	assert_int_equal(answer(a.id, APPROVAL_APPROVED), ERR_NONE);
	for (size_t i = 0; i < ARRAY_LEN(other); i++) {
		ask(&b, other[i]);
		assert_int_equal(b.asked, 0);
		assert_string_not_equal(a.id, b.id);
		approval_leave(&b.w, false);
	}
	ask(&b, push());
	assert_int_equal(b.asked, 1);
	assert_string_equal(a.id, b.id);
	ask(&b, push());
	assert_int_equal(b.asked, 0);
	approval_leave(&b.w, false);
}

/* ---- grants -------------------------------------------------------------------------------- */

static const struct {
	const char *name, *pattern, *arguments;
	bool fits;
} fits[] = {
#define ARGS(sandbox, command, n)                                                                  \
	"{\"sandbox\":\"" sandbox "\",\"command\":\"" command "\",\"n\":" n "}"
	{ "star", "{\"/command\":\"git push *\"}", ARGS("sbx-1", "git push two", "[1,2]"), true },
	{ "other sandbox", "{\"/command\":\"git push *\"}", ARGS("sbx-2", "git push two", "[1,2]"),
	  false },
	{ "both", "{\"/command\":\"git push *\",\"/sandbox\":\"sbx-*\"}",
	  ARGS("sbx-2", "git push two", "[1,2]"), true },
	{ "other words", "{\"/command\":\"git push *\"}", ARGS("sbx-1", "git pull", "[1,2]"),
	  false },
	{ "member that is not named", "{\"/command\":\"*\"}", ARGS("sbx-1", "ls", "[1,3]"), false },
	{ "any value", "{\"/n\":\"*\"}", ARGS("sbx-1", "git push one", "{}"), true },
	{ "any command", "{\"/command\":\"*\"}", ARGS("sbx-1", "rm -rf / ; ls", "[1,2]"), true },
	{ "in an array", "{\"/n/1\":\"*\"}", ARGS("sbx-1", "git push one", "[1,9]"), true },
	{ "longer array", "{\"/n/1\":\"*\"}", ARGS("sbx-1", "git push one", "[1,9,3]"), false },
	{ "second command", "{\"/command\":\"git push *\"}",
	  ARGS("sbx-1", "git push x; rm -rf /", "[1,2]"), false },
	{ "substitution", "{\"/command\":\"git push *\"}",
	  ARGS("sbx-1", "git push $(cat /k)", "[1,2]"), false },
	{ "line break", "{\"/command\":\"git push *\"}", ARGS("sbx-1", "git push x\\nls", "[1,2]"),
	  false },
	{ "what redaction hides", "{\"/command\":\"git push *\"}",
	  ARGS("sbx-1", "git push [REDACTED:github-token]", "[1,2]"), false },
	{ "own semicolon", "{\"/command\":\"cd *; git push *\"}",
	  ARGS("sbx-1", "cd a; git push b", "[1,2]"), true },
	{ "another member", "{\"/command\":\"*\"}",
	  "{\"sandbox\":\"sbx-1\",\"command\":\"x\",\"n\":[1,2],\"root\":true}", false },
};

static void test_patterns(void **state)
{
	struct approval_ask q = push();
	struct caller a, b;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(fits); i++) {
		ask(&a, push());
		ROW_CHECK(answer_by(a.id, APPROVAL_APPROVED, APPROVAL_ALWAYS, fits[i].pattern,
				    &e) == ERR_NONE,
			  fits[i].name);
		ROW_CHECK(a.ended == 1, fits[i].name);
		q.digest = STR_LIT("d9");
		q.arguments = str_of(fits[i].arguments);
		ask(&b, q);
		ROW_CHECK(b.asked == fits[i].fits, fits[i].name);
		if (!b.asked)
			approval_leave(&b.w, false);
		ROW_CHECK(answer(a.id, APPROVAL_VOID) == ERR_NONE, fits[i].name);
	}
	ask(&b, push());
	assert_int_equal(b.asked, 0);
	approval_leave(&b.w, false);
}

/* A pattern is for the sandbox that was asked about, and not for the next of its name, unless it
 * frees the name and the other has another. */
static void test_pattern_of_a_sandbox(void **state)
{
	struct approval_ask later = push(), other = push();
	struct caller a, b, c;
	struct err e;

	later.sandbox = 8;
	ask(&a, push());
	ask(&b, later);
	assert_int_equal(answer_by(a.id, APPROVAL_APPROVED, APPROVAL_ALWAYS,
				   "{\"/command\":\"git push *\"}", &e),
			 ERR_NONE);
	assert_true(a.ended == 1 && b.ended == 0);
	approval_leave(&b.w, false);
	for (int i = 0; i < 2; i++) {
		ask(&c, push());
		assert_int_equal(c.asked, 1);
		ask(&c, later);
		assert_int_equal(c.asked, 0);
		approval_leave(&c.w, false);
		again();
	}
	assert_int_equal(answer(a.id, APPROVAL_VOID), ERR_NONE);

	other.target = STR_LIT("sbx-2");
	other.arguments = STR_LIT(ARGS("sbx-2", "git push one", "[1,2]"));
	other.sandbox = 8;
	ask(&a, push());
	ask(&b, other);
	assert_int_equal(
		answer_by(a.id, APPROVAL_APPROVED, APPROVAL_ALWAYS, "{\"/sandbox\":\"*\"}", &e),
		ERR_NONE);
	assert_true(a.ended == 1 && b.ended == 1);
	assert_int_equal(state_of(b.id), APPROVAL_SUPERSEDED);
}

static void test_bad_patterns(void **state)
{
	static const char *const bad[] = { "[]",
					   "{",
					   "{\"/command\":1}",
					   "{\"/none\":\"*\"}",
					   "{\"\":\"*\"}",
					   "{\"command\":\"*\"}",
					   "{\"/command\":\"*\",\"/command\":\"x\"}" };
	struct caller a;
	struct err e;

	ask(&a, push());
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ROW_CHECK(answer_by(a.id, APPROVAL_APPROVED, APPROVAL_ALWAYS, bad[i], &e) ==
				  ERR_INVALID,
			  bad[i]);
	assert_int_equal(answer_by(a.id, APPROVAL_APPROVED, APPROVAL_ONCE, "{}", &e), ERR_INVALID);
	assert_int_equal(answer(a.id, APPROVAL_VOID), ERR_INVALID);
	assert_int_equal(a.ended, 0);
	approval_leave(&a.w, false);
}

static void test_conversation(void **state)
{
	struct approval_ask q = push();
	struct caller a, b;
	struct err e;

	ask(&a, push());
	assert_int_equal(answer_by(a.id, APPROVAL_APPROVED, APPROVAL_CONVERSATION, NULL, &e),
			 ERR_NONE);
	for (int i = 0; i < 2; i++) {
		ask(&b, push());
		assert_int_equal(b.asked, 1);
	}
	q.conversation = STR_LIT("other");
	ask(&b, q);
	assert_int_equal(b.asked, 0);
	approval_leave(&b.w, false);
	q.conversation = STR_NONE;
	ask(&b, q);
	assert_int_equal(b.asked, 0);
	assert_int_equal(answer_by(b.id, APPROVAL_APPROVED, APPROVAL_CONVERSATION, NULL, &e),
			 ERR_INVALID);
	approval_leave(&b.w, false);
	again(); /* conversations end with the hub */
	ask(&b, push());
	assert_int_equal(b.asked, 0);
	approval_leave(&b.w, false);
}

static void test_superseded(void **state)
{
	struct approval_ask q = push();
	struct caller a[3];
	struct err e;

	for (int i = 0; i < 3; i++)
		ask(&a[i], push());
	q.digest = STR_LIT("d2");
	q.arguments = STR_LIT("{}");
	approval_leave(&a[2].w, false);
	ask(&a[2], q);
	assert_int_equal(answer_by(a[0].id, APPROVAL_APPROVED, APPROVAL_ALWAYS, NULL, &e),
			 ERR_NONE);
	assert_int_equal(a[0].ended, 1);
	assert_int_equal(a[1].ended, 1);
	assert_int_equal(a[2].ended, 0);
	assert_int_equal(state_of(a[1].id), APPROVAL_SUPERSEDED);
	assert_int_equal(answer(a[1].id, APPROVAL_DENIED), ERR_ANSWERED);
	approval_leave(&a[2].w, false);
}

/* ---- bounds and deadlines ------------------------------------------------------------------ */

static void test_bounds(void **state)
{
	struct approval_ask q = push();
	struct caller a[4];

	end();
	begin_with((struct approvals_options){ .asks = { .max_open = 3, .max_each = 2 } });
	ask(&a[0], q);
	ask(&a[1], q);
	ask(&a[2], q);
	assert_int_equal(a[2].asked, -1);
	assert_int_equal(a[2].code, ERR_LIMIT);
	q.principal = STR_LIT("key:b");
	ask(&a[2], q);
	assert_int_equal(a[2].asked, 0);
	q.principal = STR_LIT("key:c");
	ask(&a[3], q);
	assert_int_equal(a[3].code, ERR_LIMIT);
	assert_int_equal(answer(a[1].id, APPROVAL_DENIED), ERR_NONE);
	ask(&a[3], q);
	assert_int_equal(a[3].asked, 0);
	approval_leave(&a[0].w, false);
	approval_leave(&a[2].w, false);
	approval_leave(&a[3].w, false);
}

/* "key:a/1" is paid for by "key:a", and "local" has room of its own. */
static struct str payer(void *data, struct str principal)
{
	const char *end = memchr(principal.p, '/', principal.n);

	if (str_is(principal, "local"))
		return STR_NONE;
	return (struct str){ principal.p, end ? (size_t)(end - principal.p) : principal.n };
}

static void test_shares_go_by_who_pays(void **state)
{
	static const struct {
		const char *principal;
		bool goes;
	} asks[] = {
		/* each has its own share, and all of a payer as many as are free */
		{ "key:a/1", true },
		{ "key:a/1", true },
		{ "key:a/1", false },
		{ "key:a/2", true },
		{ "key:a/2", true },
		{ "key:a/3", false },
		{ "key:a", false },
		/* whoever comes next finds room */
		{ "key:b", true },
		{ "key:b/1", true },
		{ "key:b/2", false },
		{ "key:c", true },
		{ "key:c/1", false },
		{ "key:d", true },
		{ "key:e", false },
		/* the operator always does, its agents likewise only as long as there is some */
		{ "local", true },
		{ "local", true },
		{ "local", false },
		{ "local/1", false },
	};
	struct approval_ask q = push();
	struct caller a[ARRAY_LEN(asks)];

	end();
	begin_with((struct approvals_options){
		.asks = { .max_open = 8, .max_each = 2, .payer = payer } });
	for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
		q.principal = str_of(asks[i].principal);
		ask(&a[i], q);
		if ((a[i].asked == 0) != asks[i].goes)
			fail_msg("%zu: %s: %d", i, asks[i].principal, a[i].asked);
	}
	for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
		if (asks[i].goes)
			approval_leave(&a[i].w, false);
	}
}

static void test_expires(void **state)
{
	struct caller a;

	end();
	begin_with((struct approvals_options){ .expire_ms = 1 });
	ask(&a, push());
	while (!a.ended)
		uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(a.ended, -1);
	assert_int_equal(a.code, ERR_DENIED);
	assert_int_equal(state_of(a.id), APPROVAL_EXPIRED);
	assert_int_equal(answer(a.id, APPROVAL_APPROVED), ERR_ANSWERED);
	/* one that its caller left to the next hub */
	ask(&a, push());
	approval_leave(&a.w, true);
	again();
	while (state_of(a.id) == APPROVAL_PENDING) {
		usleep(1000);
		again();
	}
	assert_int_equal(state_of(a.id), APPROVAL_EXPIRED);
}

/* ---- after the hub ------------------------------------------------------------------------- */

static void test_restart(void **state)
{
	struct caller a, b;

	ask(&a, push());
	approval_leave(&a.w, true);
	again();
	assert_int_equal(answer(a.id, APPROVAL_APPROVED), ERR_NONE);
	again();
	ask(&b, push());
	assert_int_equal(b.asked, 1);
	assert_string_equal(a.id, b.id);
	again();
	ask(&b, push());
	assert_int_equal(b.asked, 0);
	approval_leave(&b.w, false);
}

static void test_grant_after_restart(void **state)
{
	struct caller a;
	struct err e;

	ask(&a, push());
	assert_int_equal(answer_by(a.id, APPROVAL_APPROVED, APPROVAL_ALWAYS,
				   "{\"/command\":\"git push *\"}", &e),
			 ERR_NONE);
	again();
	ask(&a, push());
	assert_int_equal(a.asked, 1);
}

/* A hub that is killed while it asks, answers or uses: whatever it told anyone is so. */
static void test_killed(void **state)
{
	for (int step = 0; step < 3; step++) {
		struct caller a;
		int status;
		pid_t pid;

		end();
		pid = fork();
		if (pid == 0) {
			begin();
			ask(&a, push());
			if (step == 0)
				raise(SIGKILL);
			approval_leave(&a.w, true);
			if (answer(a.id, APPROVAL_APPROVED) != ERR_NONE)
				_exit(1);
			if (step == 1)
				raise(SIGKILL);
			ask(&a, push());
			raise(SIGKILL);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		begin();
		ask(&a, push());
		assert_int_equal(a.asked, step == 1);
		if (step == 0) /* the same request still, and not a second one */
			assert_null(approval_after(all, approval_after(all, 0)->ask.seq));
		if (!a.asked)
			approval_leave(&a.w, false);
	}
}

/* ---- what is shown ------------------------------------------------------------------------- */

static void test_shown(void **state)
{
	static char big[2 * APPROVAL_ARGUMENTS_MAX] = "{\"command\":\"";
	struct approval_ask q = push();
	const struct approval *a;
	struct caller c;
	struct err e;

	q.arguments = STR_LIT("{\"command\":\"ls \xe2\x80\xae txt.exe\xc2\x9b[2J\x7f "
			      "\xf3\xa0\x81\x81\xef\xbb\xbf ok \xc3\xa9\"}");
	ask(&c, q);
	a = approval_find(all, str_of(c.id), &e);
	assert_string_equal(a->row.arguments.p,
			    "{\"command\":\"ls \\u202e txt.exe\\u009b[2J\\u007f "
			    "\\udb40\\udc41\\ufeff ok \xc3\xa9\"}");
	approval_leave(&c.w, false);
	memset(big + strlen(big), 'x', sizeof(big) - 16);
	strcpy(big + sizeof(big) - 3, "\"}");
	q.arguments = str_of(big);
	ask(&c, q);
	a = approval_find(all, str_of(c.id), &e);
	assert_true(a->cut);
	assert_int_equal(a->row.size, strlen(big));
	assert_true(a->row.arguments.n < APPROVAL_ARGUMENTS_MAX + 8);
	/* what nobody has seen nobody approves, in any scope */
	for (enum approval_scope scope = 0; scope < APPROVAL_SCOPES; scope++)
		assert_int_equal(answer_by(c.id, APPROVAL_APPROVED, scope, NULL, &e), ERR_DENIED);
	assert_int_equal(
		answer_by(c.id, APPROVAL_APPROVED, APPROVAL_ALWAYS, "{\"/command\":\"*\"}", &e),
		ERR_DENIED);
	assert_int_equal(answer_by(c.id, APPROVAL_DENIED, APPROVAL_ONCE, NULL, &e), ERR_NONE);
}

/* ---- what is hidden -------------------------------------------------------------------------- */

static void test_hides(void **state)
{
	struct approval_ask q = push();
	struct caller a;
	struct err e;

	q.arguments = STR_LIT("{\"command\":\"P=[REDACTED:password:output]\"}");
	q.hides = true;
	ask(&a, q);
	for (enum approval_scope s = 0; s < APPROVAL_SCOPES; s++) {
		assert_int_equal(answer_by(a.id, APPROVAL_APPROVED, s, NULL, &e), ERR_DENIED);
		assert_non_null(strstr(e.msg, "shown whole"));
		assert_int_equal(state_of(a.id), APPROVAL_PENDING);
	}
	assert_int_equal(answer(a.id, APPROVAL_DENIED), ERR_NONE);
	assert_non_null(strstr(a.msg, "docs/secrets.md"));
}

/* The registry does not say whether a mark is of a value: the call that is repeated does. */
static void test_hides_after_a_restart(void **state)
{
	struct approval_ask q = push();
	struct caller a, b;

	q.arguments = STR_LIT("{\"command\":\"P=[REDACTED:named:output]\"}");
	ask(&a, q);
	approval_leave(&a.w, true);
	again();
	assert_int_equal(answer(a.id, APPROVAL_APPROVED), ERR_DENIED);
	q.arguments = STR_LIT("{\"command\":\"P=shown\"}");
	ask(&b, q); /* what is shown is still the old text */
	assert_string_equal(a.id, b.id);
	assert_int_equal(answer(a.id, APPROVAL_APPROVED), ERR_DENIED);
	approval_leave(&b.w, true);
	q.arguments = STR_LIT("{\"command\":\"P=[REDACTED:named:output]\"}");
	ask(&b, q);
	assert_int_equal(answer(a.id, APPROVAL_APPROVED), ERR_NONE);
	assert_int_equal(b.ended, 1);
}

/* What was approved before redaction hid it: by a grant, and for one call that did not come. */
static void test_hides_what_was_approved(void **state)
{
	struct approval_ask q = push();
	struct caller a, b;

	q.arguments = STR_LIT("{\"command\":\"P=[REDACTED:password:output]\"}");
	for (enum approval_scope s = APPROVAL_ONCE; s <= APPROVAL_ALWAYS; s += APPROVAL_ALWAYS) {
		struct err e;

		q.hides = false;
		ask(&a, q);
		approval_leave(&a.w, true);
		assert_int_equal(answer_by(a.id, APPROVAL_APPROVED, s, NULL, &e), ERR_NONE);
		q.hides = true;
		ask(&b, q);
		assert_int_equal(b.asked, 0);
		assert_string_not_equal(a.id, b.id);
		approval_leave(&b.w, false);
		q.hides = false;
		ask(&b, q);
		assert_int_equal(b.asked, 1);
	}
}

/* What never ran is good for one call again, and a grant is what it was. */
static void test_give_back(void **state)
{
	struct caller a;

	ask(&a, push());
	approval_give_back(all, str_of(a.id)); /* is not answered */
	assert_int_equal(answer(a.id, APPROVAL_APPROVED), ERR_NONE);
	assert_int_equal(a.ended, 1);
	for (int i = 0; i < 2; i++) {
		struct caller b;

		approval_give_back(all, str_of(a.id));
		approval_give_back(all, str_of(a.id));
		again();
		ask(&b, push());
		assert_int_equal(b.asked, 1);
	}
	ask(&a, push());
	assert_int_equal(a.asked, 0);
	approval_leave(&a.w, false);
}

int main(void)
{
#define ROW(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		ROW(test_hides),
		ROW(test_hides_after_a_restart),
		ROW(test_hides_what_was_approved),
		ROW(test_give_back),
		ROW(test_once),
		ROW(test_two_at_once),
		ROW(test_first_answer_wins),
		ROW(test_cancelled),
		ROW(test_changed),
		ROW(test_patterns),
		ROW(test_pattern_of_a_sandbox),
		ROW(test_bad_patterns),
		ROW(test_conversation),
		ROW(test_superseded),
		ROW(test_bounds),
		ROW(test_shares_go_by_who_pays),
		ROW(test_expires),
		ROW(test_restart),
		ROW(test_grant_after_restart),
		ROW(test_killed),
		ROW(test_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
