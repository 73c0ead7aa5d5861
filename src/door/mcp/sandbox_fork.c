#include "door/mcp/tools.h"

#include "base/clock.h"
#include "json/document/write.h"
#include "door/mcp/common.h"

enum { REPLICAS_MAX = 64 };

struct fork_params {
	struct str sandbox;
	uint32_t replicas;
};

static const struct field fork_fields[] = {
	SANDBOX_ROW(struct fork_params),
	FIELD(struct fork_params, replicas, .min = 1, .max = REPLICAS_MAX, .def = DEFAULT_INT(1),
	      .doc = "How many copies to make; all of them or none."),
};
static const struct field_table fork_input = FIELD_TABLE(struct fork_params, fork_fields);

struct fork_result {
	struct field_strs sandboxes;
	double milliseconds;
};

static const struct field result_fields[] = {
	FIELD(struct fork_result, sandboxes, .flags = FIELD_REQUIRED, .doc = "Ids of the copies."),
	FIELD(struct fork_result, milliseconds, .doc = "How long it took."),
};
static const struct field_table fork_output = FIELD_TABLE(struct fork_result, result_fields);

struct fork_run {
	struct call *call;
	uint64_t begun_ns;
};

static int text_of(const void *result, struct buf *to, struct err *e)
{
	const struct field_strs *ids = &((const struct fork_result *)result)->sandboxes;
	struct json_writer w = json_writer(to);

	json_write_array(&w);
	for (size_t i = 0; i < ids->n; i++)
		json_write_str(&w, ids->p[i]);
	json_write_array_end(&w);
	return json_write_done(&w, e);
}

static void answer(const struct fork_run *r, struct life *const *children, size_t n)
{
	struct str ids[REPLICAS_MAX];
	struct fork_result result = {
		.sandboxes = { ids, n },
		.milliseconds = (double)(clock_ns() - r->begun_ns) / 1e6,
	};

	for (size_t i = 0; i < n; i++) {
		struct life_info info;

		life_info(children[i], &info);
		ids[i] = info.id;
	}
	call_answer(r->call, &result);
}

static void on_forked(void *arg, struct life *const *children, size_t n, const struct err *err)
{
	struct fork_run *r = arg;
	struct err e = ERR_INIT;

	if (err) {
		call_fail(r->call, err);
	} else if (call_cancelled(r->call)) {
		/* Nobody will learn their ids. */
		for (size_t i = 0; i < n; i++)
			tool_discard(children[i]);
		err_set(&e, ERR_CANCELLED, "sandbox_fork was cancelled");
		call_fail(r->call, &e);
	} else {
		answer(r, children, n);
	}
}

static void run(struct call *c, const void *params)
{
	const struct fork_params *p = params;
	struct err e = ERR_INIT;
	struct life *source = call_life(c, p->sandbox, &e);
	struct fork_run *r = source ? arena_alloc(call_arena(c), sizeof(*r), &e) : NULL;

	if (!r) {
		call_fail(c, &e);
		return;
	}
	*r = (struct fork_run){ .call = c, .begun_ns = clock_ns() };
	life_fork_start(source, &(struct life_fork_spec){ .n = p->replicas }, on_forked, r);
}

const struct tool sandbox_fork_tool = {
	.op =
		&(const struct op){
			.action = "sandbox.fork",
			.effect = OP_WRITE,
			.request = &fork_input,
			.target = OP_TARGET(struct fork_params, sandbox),
			.result = &fork_output,
			.run = run,
		},
	.name = "sandbox_fork",
	.title = "Fork a sandbox",
	.doc = "Makes copies of a sandbox with its files, limits and environment as they are at one "
	       "instant; from then on they change apart. Processes are not copied. Returns a JSON array "
	       "of the new ids.",
	.text = text_of,
};
