/* hub.health: how many, and nothing of whom. */
#include "box/host/box.h"
#include "hub/sandbox/sandbox.h"
#include "op/template.h"

struct health {
	struct str status, tier, version;
	bool mock;
	uint64_t templates, sandboxes;
};

static const struct field health_fields[] = {
	FIELD(struct health, status, .flags = FIELD_REQUIRED, .doc = "ok"),
	FIELD(struct health, mock, .flags = FIELD_REQUIRED,
	      .doc = "false: sandboxes are real ones."),
	FIELD(struct health, templates, .flags = FIELD_REQUIRED, .doc = "Templates that exist."),
	FIELD(struct health, sandboxes, .flags = FIELD_REQUIRED, .doc = "Sandboxes that run."),
	FIELD(struct health, tier, .flags = FIELD_REQUIRED, .doc = "What isolates sandboxes."),
	FIELD(struct health, version, .flags = FIELD_REQUIRED, .doc = "Of the program."),
};
static const struct field_table health_table = FIELD_TABLE(struct health, health_fields);

static void hub_health_run(struct call *c, const void *request)
{
	struct hub_sandboxes_stats sandboxes;
	struct box_stats stats;
	struct health h = {
		.status = STR_LIT("ok"),
		.version = STR_LIT(HOLT_VERSION),
		.templates = templates_count(c),
	};

	box_stats(call_box(c), &stats);
	h.tier = str_of(stats.tier);
	hub_sandboxes_stats(call_sandboxes(c), &sandboxes);
	h.sandboxes = sandboxes.by_state[SANDBOX_RUNNING] + sandboxes.by_state[SANDBOX_PAUSED];
	call_answer(c, &h);
}

const struct op hub_health_op = {
	.action = "hub.health",
	.doc = "Whether the server works, and how much it has.",
	.effect = OP_READ,
	.request = &op_nothing_table,
	.result = &health_table,
	.run = hub_health_run,
};
