#include "cli/link/copies.h"

static const struct option_row rows[] = {
	ASK_OPTION(lists[0], OPTION_LIST, "name", .letter = 'n', .arg = "NAME", .member = "ids",
		   .doc = "Name of a copy; by default the hub makes one. May be repeated, once per "
			  "copy."),
	ASK_OPTION(counts[0], OPTION_COUNT, "count", .letter = 'c', .arg = "N", .min = 1, .max = 64,
		   .doc = "Number of copies; 1 by default."),
	LABEL_ROW(struct ask_options, lists[1]),
	ASK_END,
};
const struct option_table copies_options = OPTION_TABLE(rows, .mixed = true);

int copies_check(const struct verb_input *in, struct err *e)
{
	const struct ask_options *o = in->options;

	return o->lists[0].n && o->counts[0] && o->counts[0] != o->lists[0].n
		     ? err_set(e, ERR_INVALID, "--count says another number than there are names")
		     : 0;
}

int copies_write(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	const struct ask_options *o = in->options;

	if (!o->lists[0].n) {
		json_write_key(w, "count");
		json_write_uint(w, o->counts[0] ? o->counts[0] : 1);
	}
	return o->lists[1].n ? hub_link_labels(w, &o->lists[1], e) : 0;
}
