/* Questions: what can be asked and is an answer, that the first one counts, and that all of it is
 * so after the hub has ended or was killed at any point. */
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask/question.h"

static char dir[64], path[128];
static uv_loop_t loop;
static struct store *store;
static struct questions *all;
static unsigned changes;

static void on_change(void *data, const struct ask *a)
{
	changes++;
}

static void begin_with(struct asks_options o)
{
	struct err e = ERR_INIT;

	assert_int_equal(uv_loop_init(&loop), 0);
	store = store_open(path, &e);
	assert_non_null(store);
	o.on_change = on_change;
	all = questions_new(&loop, store, &o, &e);
	if (!all)
		fail_msg("%s", e.msg);
}

static void begin(void)
{
	begin_with((struct asks_options){ 0 });
}

static void end(void)
{
	questions_free(all);
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
	snprintf(dir, sizeof(dir), "/tmp/unit-question-XXXXXX");
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
	struct question_wait w;
	int ended, asked; /* asked: as question_ask() returned */
	enum question_state state;
	int chosen;
	enum err_code code;
	char id[64], label[64];
};

static void on_end(void *data, const struct question *q)
{
	struct caller *c = data;

	assert_int_equal(c->ended++, 0);
	c->state = q->state;
	c->chosen = question_chosen(q);
	snprintf(c->label, sizeof(c->label), "%.*s", STR_ARG(q->reply.label));
}

static const struct question_option choices[] = {
	{ STR_LIT("yes"), STR_LIT("Go on") },
	{ STR_LIT("no"), STR_LIT("Stop") },
};

static struct question_ask yes_no(void)
{
	return (struct question_ask){
		.principal = STR_LIT("key:ci"),
		.kind = QUESTION_YES_NO,
		.spec = { .question = STR_LIT("Deploy?"), .options = { choices, 2 } },
		.timeout_ms = 60000,
	};
}

static void ask(struct caller *c, struct question_ask q)
{
	const struct question *made = NULL;
	struct err e = ERR_INIT;

	*c = (struct caller){ .w = { .on_end = on_end, .data = c } };
	c->asked = question_ask(all, &q, &c->w, &made, &e);
	c->code = e.code;
	if (c->asked == 0)
		memcpy(c->id, made->ask.id.p, made->ask.id.n + 1);
}

static enum err_code answer_by(const char *id, struct question_reply r, struct err *e)
{
	*e = (struct err){ 0 };
	return question_answer(all,
			       &(struct question_answer){ .id = str_of(id),
							  .reply = r,
							  .who = STR_LIT("ada"),
							  .surface = STR_LIT("rest") },
			       e) < 0
		     ? e->code
		     : ERR_NONE;
}

static enum err_code answer(const char *id, const char *option)
{
	struct err e;

	return answer_by(id, (struct question_reply){ .option_id = str_of(option) }, &e);
}

static const struct question *find(const char *id)
{
	struct err e;
	const struct question *q = question_find(all, str_of(id), &e);

	assert_non_null(q);
	return q;
}

/* ---- the first answer counts --------------------------------------------------------------- */

static void test_first_answer_wins(void **state)
{
	struct caller a;
	struct err e;

	ask(&a, yes_no());
	assert_int_equal(a.asked, 0);
	assert_int_equal(answer(a.id, "maybe"), ERR_INVALID);
	assert_int_equal(a.ended, 0);
	assert_int_equal(answer(a.id, "yes"), ERR_NONE);
	assert_int_equal(a.state, QUESTION_ANSWERED);
	assert_int_equal(a.chosen, 0);
	assert_string_equal(a.label, "Go on"); /* the hub's */
	assert_int_equal(answer_by(a.id, (struct question_reply){ .option_id = STR_LIT("no") }, &e),
			 ERR_ANSWERED);
	assert_non_null(strstr(e.msg, "was answered by ada over rest at 20"));
	assert_int_equal(find(a.id)->state, QUESTION_ANSWERED);
	assert_int_equal(answer("qst-none", "yes"), ERR_QUESTION_NOT_FOUND);
	assert_int_equal(changes, 2);
}

static void test_several_at_once(void **state)
{
	struct caller a[50];

	for (size_t i = 0; i < ARRAY_LEN(a); i++)
		ask(&a[i], yes_no());
	for (size_t i = ARRAY_LEN(a); i-- > 0;) {
		assert_int_equal(answer(a[i].id, i % 2 ? "yes" : "no"), ERR_NONE);
		for (size_t k = 0; k < i; k++)
			assert_int_equal(a[k].ended, 0);
		assert_int_equal(a[i].chosen, i % 2 ? 0 : 1);
	}
}

static void test_cancelled_and_superseded(void **state)
{
	struct caller a, b;
	struct err e;

	ask(&a, yes_no());
	ask(&b, yes_no());
	question_give_up(&a.w, QUESTION_CANCELLED);
	question_give_up(&b.w, QUESTION_SUPERSEDED);
	question_give_up(&b.w, QUESTION_CANCELLED);
	assert_int_equal(a.ended + b.ended, 0); /* they wait no more */
	assert_int_equal(find(a.id)->state, QUESTION_CANCELLED);
	assert_int_equal(find(b.id)->state, QUESTION_SUPERSEDED);
	assert_int_equal(answer(a.id, "yes"), ERR_ANSWERED);
	ask(&a, yes_no());
	assert_int_equal(question_cancel(all, str_of(a.id), STR_LIT("bob"), STR_LIT("rest"), &e),
			 0);
	assert_int_equal(a.state, QUESTION_CANCELLED);
	assert_int_equal(answer(a.id, "yes"), ERR_ANSWERED);
}

static void test_several_wait(void **state)
{
	struct caller a, b = { .w = { .on_end = on_end, .data = &b } };
	struct caller c = { .w = { .on_end = on_end, .data = &c } };
	const struct question *q;
	struct err e;

	ask(&a, yes_no());
	assert_int_equal(question_join(all, str_of(a.id), &b.w, &q, &e), 0);
	assert_int_equal(question_join(all, str_of(a.id), &c.w, &q, &e), 0);
	question_give_up(&c.w, QUESTION_PENDING);
	assert_int_equal(answer(a.id, "no"), ERR_NONE);
	assert_int_equal(a.chosen + b.chosen, 2);
	assert_int_equal(c.ended, 0);
	assert_int_equal(question_join(all, str_of(a.id), &c.w, &q, &e), 1);
	assert_int_equal(question_chosen(q), 1);
	assert_int_equal(question_join(all, STR_LIT("qst-x"), &c.w, &q, &e), -1);
}

/* ---- what can be asked --------------------------------------------------------------------- */

static void test_kinds(void **state)
{
	static const struct question_option many[] = {
		{ STR_LIT("1"), STR_LIT("a") }, { STR_LIT("2"), STR_LIT("b") },
		{ STR_LIT("3"), STR_LIT("c") }, { STR_LIT("4"), STR_LIT("d") },
		{ STR_LIT("5"), STR_LIT("e") }, { STR_LIT("5"), STR_LIT("f") },
		{ STR_LIT("6"), STR_LIT("e") },
	};
	static const struct {
		const char *name;
		enum question_kind kind;
		size_t first, n;
		bool free_text, nothing, ok;
	} rows[] = {
		{ "yes or no", QUESTION_YES_NO, 0, 2, .ok = true },
		{ "yes alone", QUESTION_YES_NO, 0, 1 },
		{ "nothing asked", QUESTION_YES_NO, 0, 2, .nothing = true },
		{ "four buttons", QUESTION_BUTTONS, 0, 4, .ok = true },
		{ "five buttons", QUESTION_BUTTONS, 0, 5 },
		{ "no button", QUESTION_BUTTONS, 0, 0 },
		{ "five of a list", QUESTION_SELECT, 0, 5, .ok = true },
		{ "or a text", QUESTION_SELECT, 0, 5, .free_text = true, .ok = true },
		{ "yes or a text", QUESTION_YES_NO, 0, 2, .free_text = true },
		{ "an id twice", QUESTION_SELECT, 4, 2 },
		{ "a label twice", QUESTION_SELECT, 4, 3 },
		{ "a textbox", QUESTION_TEXTBOX, 0, 0, .ok = true },
		{ "options of a textbox", QUESTION_TEXTBOX, 0, 1 },
		{ "a form without a schema", QUESTION_FORM, 0, 0 },
		{ "a notification", QUESTION_NOTIFY, 0, 0, .ok = true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct question_ask q = yes_no();
		struct caller a;

		q.kind = rows[i].kind;
		q.spec.options.p = many + rows[i].first;
		q.spec.options.n = rows[i].n;
		q.spec.allow_free_text = rows[i].free_text;
		if (rows[i].nothing)
			q.spec.question = STR_NONE;
		ask(&a, q);
		ROW_CHECK((a.asked == 0) == rows[i].ok, rows[i].name);
		ROW_CHECK(a.asked == 0 || a.code == ERR_INVALID, rows[i].name);
		question_give_up(&a.w, QUESTION_CANCELLED);
	}
}

#define FORM(members) "{\"type\":\"object\",\"properties\":{" members "}}"
static void test_schemas(void **state)
{
	static const struct {
		const char *schema;
		bool ok;
	} rows[] = {
		{ FORM("\"a\":{\"type\":\"string\",\"title\":\"A\",\"maxLength\":3}"), true },
		{ FORM("\"a\":{\"type\":\"string\",\"enum\":[\"x\",\"y\"],\"enumNames\":[\"X\","
		       "\"Y\"]}"),
		  true },
		{ FORM("\"a\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"x\",\"title\":\"X\"}]}"),
		  true },
		{ FORM("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
		       "\"enum\":[\"x\"]}}"),
		  true },
		{ FORM("\"a\":{\"type\":\"boolean\",\"default\":true}"), true },
		{ FORM("\"a\":{\"type\":\"integer\",\"minimum\":1}"), true },
		{ FORM(""), false },
		{ "[]", false },
		{ "{", false },
		{ "{\"type\":\"string\"}", false },
		{ FORM("\"a\":{\"type\":\"object\"}"), false },
		{ FORM("\"a\":{\"type\":\"string\",\"pattern\":\"(a+)+\"}"), false },
		{ FORM("\"a\":{\"type\":\"string\",\"title\":{}}"), false },
		{ FORM("\"a\":{\"$ref\":\"#\"}"), false },
		{ FORM("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"), false },
		{ FORM("\"a\":{\"type\":\"array\"}"), false },
		{ FORM("\"a\":{\"type\":\"string\",\"oneOf\":[{\"const\":{}}]}"), false },
		{ FORM("\"\":{\"type\":\"string\"}"), false },
		{ FORM("\"a\":{\"type\":\"string\",\"minLength\":\"x\"}"), false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct question_ask q = yes_no();
		struct caller a;

		q.kind = QUESTION_FORM;
		q.spec.options.n = 0;
		q.spec.schema.text = str_of(rows[i].schema);
		ask(&a, q);
		ROW_CHECK((a.asked == 0) == rows[i].ok, rows[i].schema);
		question_give_up(&a.w, QUESTION_CANCELLED);
	}
}

/* ---- what is an answer --------------------------------------------------------------------- */

static void test_form(void **state)
{
	static const struct {
		const char *values;
		bool ok;
	} rows[] = {
		{ "{}", false },
		{ "{\"n\":0}", false },
		{ "{\"n\":1,\"other\":1}", false },
		{ "{\"n\":\"1\"}", false },
		{ "{\"n\":1,\"mail\":\"no\"}", false },
		{ "{\"n\":1,\"mail\":\"a@example.org\"}", true },
	};
	struct question_ask q = yes_no();
	struct caller a;
	struct err e;

	q.kind = QUESTION_FORM;
	q.spec.options.n = 0;
	q.spec.schema.text = STR_LIT(
		"{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{\"n\":{\"type\":"
		"\"integer\",\"minimum\":1},\"mail\":{\"type\":\"string\",\"format\":\"email\"}}}");
	ask(&a, q);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ROW_CHECK(
			(answer_by(a.id,
				   (struct question_reply){ .values = { str_of(rows[i].values) } },
				   &e) == ERR_NONE) == rows[i].ok,
			rows[i].values);
	again();
	assert_string_equal(find(a.id)->reply.values.text.p, rows[5].values);
}

static void test_texts(void **state)
{
	struct question_ask q = yes_no();
	struct caller a;
	struct err e;

	q.kind = QUESTION_TEXTBOX;
	q.spec.options.n = 0;
	q.spec.text = STR_LIT("before");
	ask(&a, q);
	assert_int_equal(answer(a.id, "yes"), ERR_INVALID);
	assert_int_equal(answer_by(a.id, (struct question_reply){ 0 }, &e), ERR_INVALID);
	assert_int_equal(answer_by(a.id, (struct question_reply){ .free_text = STR_LIT("") }, &e),
			 ERR_NONE);
	ask(&a, yes_no());
	assert_int_equal(answer_by(a.id, (struct question_reply){ .free_text = STR_LIT("x") }, &e),
			 ERR_INVALID);
	question_give_up(&a.w, QUESTION_CANCELLED);
	q = yes_no();
	q.kind = QUESTION_SELECT;
	q.spec.allow_free_text = true;
	ask(&a, q);
	assert_int_equal(
		answer_by(a.id, (struct question_reply){ .free_text = STR_LIT("x\xff") }, &e),
		ERR_NONE);
	assert_int_equal(a.chosen, -1);
	assert_string_equal(find(a.id)->reply.free_text.p, "x\xef\xbf\xbd");
}

/* ---- bounds and deadlines ------------------------------------------------------------------ */

static void test_bounds(void **state)
{
	struct question_ask q = yes_no();
	struct caller a[4];

	end();
	begin_with((struct asks_options){ .max_open = 3, .max_each = 2 });
	ask(&a[0], q);
	ask(&a[1], q);
	ask(&a[2], q);
	assert_int_equal(a[2].code, ERR_LIMIT);
	q.principal = STR_LIT("key:b");
	ask(&a[2], q);
	assert_int_equal(a[2].asked, 0);
	q.principal = STR_LIT("key:c");
	ask(&a[3], q);
	assert_int_equal(a[3].code, ERR_LIMIT);
	assert_int_equal(answer(a[1].id, "no"), ERR_NONE);
	ask(&a[3], q);
	assert_int_equal(a[3].asked, 0);
	q.timeout_ms = 0;
	ask(&a[1], q);
	assert_int_equal(a[1].code, ERR_INVALID);
}

/* "key:a/1" is paid for by "key:a", and "local" has room of its own. */
static struct str payer(void *data, struct str principal)
{
	const char *end = memchr(principal.p, '/', principal.n);

	if (str_is(principal, "local"))
		return STR_NONE;
	return (struct str){ principal.p, end ? (size_t)(end - principal.p) : principal.n };
}

static void test_notifications_of_one_payer_give_way(void **state)
{
	struct question_ask q = yes_no();
	const struct question *made;
	struct err e;
	char id[64] = "", principal[32];

	end();
	begin_with((struct asks_options){ .payer = payer });
	q.kind = QUESTION_NOTIFY;
	q.spec.options.n = 0;
	for (int i = 0; i < QUESTION_NOTES_PAID_MAX + 1; i++) {
		if (id[0])
			assert_int_equal(find(id)->state, QUESTION_PENDING);
		snprintf(principal, sizeof(principal), "key:a/%d", i / 2);
		q.principal = str_of(principal);
		assert_int_equal(question_ask(all, &q, NULL, &made, &e), 0);
		if (i == 0)
			memcpy(id, made->ask.id.p, made->ask.id.n + 1);
	}
	assert_int_equal(find(id)->state, QUESTION_SUPERSEDED);
}

static void test_notifications_give_way(void **state)
{
	struct question_ask q = yes_no();
	const struct question *made;
	struct err e;
	char id[64] = "";

	q.kind = QUESTION_NOTIFY;
	q.spec.options.n = 0;
	for (int i = 0; i < 3 * QUESTION_NOTES_MAX; i++) {
		assert_int_equal(question_ask(all, &q, NULL, &made, &e), 0);
		if (i == 0)
			memcpy(id, made->ask.id.p, made->ask.id.n + 1);
	}
	assert_int_equal(find(id)->state, QUESTION_SUPERSEDED);
	memcpy(id, made->ask.id.p, made->ask.id.n + 1);
	assert_int_equal(answer(id, "seen"), ERR_NONE);
}

static void test_closed_are_dropped(void **state)
{
	struct caller a, first;
	unsigned n = 0;

	for (int i = 0; i < QUESTION_CLOSED_MAX + 20; i++) {
		ask(i ? &a : &first, yes_no());
		question_give_up(i ? &a.w : &first.w, QUESTION_CANCELLED);
	}
	again();
	for (const struct question *q = question_after(all, 0); q;
	     q = question_after(all, q->ask.seq))
		n++;
	assert_int_equal(n, QUESTION_CLOSED_MAX);
	assert_int_equal(answer(first.id, "yes"), ERR_QUESTION_NOT_FOUND);
	assert_int_equal(answer(a.id, "yes"), ERR_ANSWERED);
}

/* It was asked before all others, and has just been answered. */
static void test_the_last_answered_stays(void **state)
{
	struct caller old, a;

	ask(&old, yes_no());
	for (int i = 0; i < QUESTION_CLOSED_MAX; i++) {
		ask(&a, yes_no());
		question_give_up(&a.w, QUESTION_CANCELLED);
	}
	assert_int_equal(answer(old.id, "yes"), ERR_NONE);
	assert_int_equal(find(old.id)->state, QUESTION_ANSWERED);
	again();
	assert_int_equal(find(old.id)->state, QUESTION_ANSWERED);
}

/* Who asks much makes room with its own. */
static void test_closed_of_another_stay(void **state)
{
	struct question_ask q = yes_no();
	struct caller first, last = { .id = "" };
	char kept[64];
	struct err e;

	ask(&first, q);
	assert_int_equal(answer(first.id, "yes"), ERR_NONE);
	memcpy(kept, first.id, sizeof(kept));
	q.principal = STR_LIT("key:other");
	for (int i = 0; i < QUESTION_CLOSED_MAX + 20; i++) {
		ask(&last, q);
		assert_int_equal(answer(last.id, "no"), ERR_NONE);
		if (i == 0)
			memcpy(first.id, last.id, sizeof(first.id));
	}
	assert_string_equal(find(kept)->reply.option_id.p, "yes");
	assert_int_equal(find(last.id)->state, QUESTION_ANSWERED);
	assert_null(question_find(all, str_of(first.id), &e));
}

static void test_expires(void **state)
{
	struct question_ask q = yes_no();
	struct caller a;

	q.timeout_ms = 1;
	ask(&a, q);
	while (!a.ended)
		uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(a.state, QUESTION_EXPIRED);
	assert_int_equal(answer(a.id, "yes"), ERR_QUESTION_EXPIRED);
	/* one that its caller left to the next hub */
	ask(&a, q);
	question_give_up(&a.w, QUESTION_PENDING);
	again();
	while (find(a.id)->state == QUESTION_PENDING) {
		usleep(1000);
		again();
	}
	assert_int_equal(find(a.id)->state, QUESTION_EXPIRED);
}

/* ---- after the hub ------------------------------------------------------------------------- */

/* Who was cut off and asks the same again has the same question, with its deadline. */
static void test_taken_up(void **state)
{
	struct question_ask q = yes_no();
	struct caller a, b, c;

	ask(&a, q);
	question_give_up(&a.w, QUESTION_PENDING);
	again();
	q.timeout_ms = 1000;
	ask(&b, q);
	assert_string_equal(a.id, b.id);
	ask(&c, q); /* the first is waited for */
	assert_string_not_equal(a.id, c.id);
	question_give_up(&b.w, QUESTION_PENDING);
	for (int i = 0; i < 3; i++) {
		struct question_ask other = q;

		if (i == 0)
			other.principal = STR_LIT("key:other");
		else if (i == 1)
			other.session = STR_LIT("20261126-100000-1a2b3c4d");
		else
			other.spec.question = STR_LIT("Deploy ?");
		ask(&b, other);
		assert_int_equal(b.asked, 0);
		assert_string_not_equal(a.id, b.id);
		question_give_up(&b.w, QUESTION_CANCELLED);
	}
	assert_int_equal(answer(a.id, "yes"), ERR_NONE);
	assert_int_equal(answer(c.id, "yes"), ERR_NONE);
}

/* One that was asked to be looked at later is nobody's who was cut off: another's answer would be
 * taken for its own, and another that gives up would take it away. */
static void test_not_taken_up(void **state)
{
	struct question_ask q = yes_no();
	const struct question *later;
	struct caller a;
	struct err e;
	char id[64];

	assert_int_equal(question_ask(all, &q, NULL, &later, &e), 0);
	memcpy(id, later->ask.id.p, later->ask.id.n + 1);
	ask(&a, q);
	assert_string_not_equal(a.id, id);
	question_give_up(&a.w, QUESTION_CANCELLED);
	assert_int_equal(find(id)->state, QUESTION_PENDING);
	assert_int_equal(answer(id, "yes"), ERR_NONE);
}

/* A hub that is killed when it has asked or was answered: whatever it told anyone is so. */
static void test_killed(void **state)
{
	for (int step = 0; step < 2; step++) {
		const struct question *q;
		int status;
		pid_t pid;

		end();
		pid = fork();
		if (pid == 0) {
			struct caller a;

			begin();
			ask(&a, yes_no());
			if (step == 1 && answer(a.id, "no") != ERR_NONE)
				_exit(1);
			raise(SIGKILL);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		begin();
		q = question_after(all, 0);
		assert_non_null(q);
		if (step == 1) { /* the first, which is still the same one */
			q = question_after(all, q->ask.seq);
			assert_int_equal(q->state, QUESTION_ANSWERED);
			assert_string_equal(q->reply.label.p, "Stop");
			assert_string_equal(q->who.p, "ada");
			continue;
		}
		assert_int_equal(q->state, QUESTION_PENDING);
		assert_string_equal(q->spec.question.p, "Deploy?");
		assert_string_equal(q->spec.options.p[1].label.p, "Stop");
		assert_int_equal(answer(q->ask.id.p, "yes"), ERR_NONE);
	}
}

int main(void)
{
#define ROW(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		ROW(test_first_answer_wins),
		ROW(test_several_at_once),
		ROW(test_cancelled_and_superseded),
		ROW(test_several_wait),
		ROW(test_kinds),
		ROW(test_schemas),
		ROW(test_form),
		ROW(test_texts),
		ROW(test_bounds),
		ROW(test_notifications_give_way),
		ROW(test_notifications_of_one_payer_give_way),
		ROW(test_closed_are_dropped),
		ROW(test_the_last_answered_stays),
		ROW(test_closed_of_another_stay),
		ROW(test_expires),
		ROW(test_taken_up),
		ROW(test_not_taken_up),
		ROW(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
