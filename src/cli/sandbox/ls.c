/* `holt ls`: the sandboxes of the hub. */
#include "cli/link/ask.h"

enum { LABELS_SHOWN = 64 << 10 };

static const struct option_row rows[] = {
	ASK_OPTION(lists[0], OPTION_LIST, "filter", .letter = 'f', .arg = "WHAT=VALUE",
		   .doc = "Only sandboxes with label=KEY, label=KEY=VALUE or state=STATE. May be "
			  "repeated."),
	ASK_OPTION(flags[0], OPTION_FLAG, "quiet", .letter = 'q',
		   .doc = "Print names only, one per line."),
	ASK_END,
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int ls_check(const struct verb_input *in, struct err *e)
{
	const struct ask_options *o = in->options;

	return o->flags[0] && o->output == OUTPUT_JSON
		     ? err_set(e, ERR_INVALID, "-q prints names, not JSON")
		     : 0;
}

/* Parameters of the route, which checks their values. */
static int ls_query(const struct verb_input *in, char *path, size_t size, struct err *e)
{
	static const char *const filters[] = { "label", "state" };
	const struct option_list *all = &((const struct ask_options *)in->options)->lists[0];

	for (size_t i = 0; i < all->n; i++) {
		const char *text = all->p[i];
		size_t n = strcspn(text, "="), k = 0;

		while (k < ARRAY_LEN(filters) &&
		       !(text[n] && str_is((struct str){ text, n }, filters[k])))
			k++;
		if (k == ARRAY_LEN(filters))
			return err_set(e, ERR_INVALID,
				       "--filter takes label=KEY, label=KEY=VALUE or state=STATE, "
				       "not '%.80s'",
				       text);
		if (hub_link_query(path, size, filters[k], text + n + 1, e) < 0)
			return -1;
	}
	return 0;
}

/* "a=1,b=2" */
static void labels_cell(struct table *t, const struct json_val *v)
{
	autobuf struct buf text = BUF_INIT(LABELS_SHOWN);
	struct json_iter it = json_iter(json_get(v, "labels"));
	struct err ignored;

	while (json_next(&it)) {
		struct str value = json_str(it.val);

		if (buf_addf(&text, &ignored, "%s%.*s%s%.*s", text.n ? "," : "", STR_ARG(it.key),
			     value.n ? "=" : "", STR_ARG(value)) < 0)
			break;
	}
	table_str(t, buf_str(&text));
}

const struct verb ls_verb = {
	.name = "ls",
	.usage = "[OPTION...]",
	.doc = "List the sandboxes of the hub.",
	.page = "holt-sandbox",
	.check = ls_check,
	ASK(options, .of = &ask_sandbox, .query = ls_query, .list = "", .prints = "id",
	    ASK_COLUMNS({ "NAME", "id" }, { "TEMPLATE", "template_id" }, { "STATE", "state" },
			{ "CREATED", "created_at" }, { "LABELS", .cell = labels_cell })),
};
