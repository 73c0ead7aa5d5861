/* Glob and Grep. */
#include <inttypes.h>

#include "door/mcp/tools.h"
#include "op/coding/coding.h"

static int found_text(const void *result, struct buf *to, struct err *e)
{
	const struct coding_found *r = result;

	if (r->shown == 0 && !r->more)
		return buf_addf(to, e, r->timed_out ? "Nothing was found in time." : "Nothing.");
	return buf_add(to, r->text.p, r->text.n, e);
}

/* Where that is not all. */
static int found_note(const void *result, struct buf *to, struct err *e)
{
	const struct coding_found *r = result;

	if (r->more && r->has_total &&
	    buf_addf(to, e, "%" PRIu64 " of %" PRIu64 ". ", r->shown, r->total) < 0)
		return -1;
	if (r->more && !r->has_total &&
	    buf_addf(to, e, "The first %" PRIu64 "; there are more. ", r->shown) < 0)
		return -1;
	if (r->timed_out && buf_addf(to, e, "The time was over before the end. ") < 0)
		return -1;
	return r->complaint.n ? buf_addf(to, e, "Not all was searched: %.*s", STR_ARG(r->complaint))
			      : 0;
}

#define R struct coding_found
static const struct field facts_fields[] = {
	FIELD(R, shown, .doc = "Number of results shown."),
	FIELD(R, more, .doc = "There are more results."),
	FIELD(R, total, .has = FIELD_HAS(R, has_total), .doc = "Number of all results."),
	FIELD(R, timed_out, .doc = "The time was up before the search was complete."),
};
#undef R
static const struct field_table found_facts = FIELD_TABLE(struct coding_found, facts_fields);

const struct tool coding_glob_tool = {
	.op = &coding_glob_op,
	.name = "Glob",
	.title = "Find files",
	.doc = "Finds files by a glob pattern, the newest first. Files that .gitignore "
	       "names are left out.",
	.text = found_text,
	.note = found_note,
	.facts = &found_facts,
};

const struct tool coding_grep_tool = {
	.op = &coding_grep_op,
	.name = "Grep",
	.title = "Search in files",
	.doc = "Searches files by a regular expression (ripgrep). Binary files and "
	       "files that .gitignore names are left out.",
	.text = found_text,
	.note = found_note,
	.facts = &found_facts,
};
