/* search_code. */
#include <inttypes.h>

#include "door/mcp/tools.h"
#include "op/coding/coding.h"

static int symbols_text(const void *result, struct buf *to, struct err *e)
{
	const struct coding_symbols *r = result;

	if (r->shown == 0)
		return buf_addf(to, e, "Nothing.");
	return buf_add(to, r->text.p, r->text.n, e);
}

static int symbols_note(const void *result, struct buf *to, struct err *e)
{
	const struct coding_symbols *r = result;

	if (r->total > r->shown &&
	    buf_addf(to, e, "%" PRIu64 " of %" PRIu64 ". ", r->shown, r->total) < 0)
		return -1;
	if (r->unread && buf_addf(to, e,
				  "%" PRIu64 " of %" PRIu64
				  " files are not known yet, or too many; Grep sees them. ",
				  r->unread, r->files) < 0)
		return -1;
	if (!r->words)
		return 0;
	return buf_addf(to, e,
			"The sandbox has no Universal Ctags, so these are words, not symbols: add "
			"the package universal-ctags to its image, or to the host that lends it "
			"/usr.");
}

#define R struct coding_symbols
static const struct field facts_fields[] = {
	FIELD(R, shown, .doc = "Number of symbols shown."),
	FIELD(R, total, .doc = "Number of all symbols found."),
	FIELD(R, words, .doc = "Plain words were searched, because there is no ctags."),
	FIELD(R, unread, .doc = "Number of files that were not searched."),
};
#undef R
static const struct field_table symbols_facts = FIELD_TABLE(struct coding_symbols, facts_fields);

const struct tool coding_symbols_tool = {
	.op = &coding_search_op,
	.name = "search_code",
	.title = "Find symbols",
	.doc = "Finds where functions, types and variables are defined, by name or by words of it.",
	.text = symbols_text,
	.note = symbols_note,
	.facts = &symbols_facts,
};
