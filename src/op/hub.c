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
	FIELD(struct health, status, .flags = FIELD_REQUIRED, .doc = "Always ok."),
	FIELD(struct health, mock, .flags = FIELD_REQUIRED,
	      .doc = "Always false: sandboxes are real."),
	FIELD(struct health, templates, .flags = FIELD_REQUIRED, .doc = "Number of templates."),
	FIELD(struct health, sandboxes, .flags = FIELD_REQUIRED,
	      .doc = "Number of running and paused sandboxes."),
	FIELD(struct health, tier, .flags = FIELD_REQUIRED,
	      .doc = "Isolation of sandboxes from the host."),
	FIELD(struct health, version, .flags = FIELD_REQUIRED, .doc = "Version of the server."),
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
	.doc = "Reports that the server works, and its numbers of templates and sandboxes.",
	.effect = OP_READ,
	.request = &op_nothing_table,
	.result = &health_table,
	.run = hub_health_run,
};
