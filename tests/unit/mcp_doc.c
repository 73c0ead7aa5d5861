/*
 * docs/mcp-protocol.md against the tables of src/mcp: what stands there between "<!-- NAME -->" and
 * "<!-- end -->" is what the tables say, to the letter. Run with the document's path; with
 * MCP_DOC_PRINT set it prints the tables instead, to be put there.
 *
 */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "mcp/message/protocol.h"
#include "test.h"

static const char *path;

/* --- what the tables say --- */

static const struct {
	size_t at;
	const char *name;
} traits[] = {
#define TRAIT(member, text)                                                                        \
	{                                                                                          \
		offsetof(struct mcp_profile, member), text                                         \
	}
	TRAIT(modern, "each request by itself: `_meta`, `resultType`, `server/discover`"),
	TRAIT(batch, "batches"),
	TRAIT(annotations, "hints of tools; `completions` as a capability"),
	TRAIT(audio, "audio content"),
	TRAIT(progress_message, "`message` of progress"),
	TRAIT(title, "`title` beside `name`"),
	TRAIT(structured, "`outputSchema`, `structuredContent`: objects"),
	TRAIT(any_structured, "the same: any JSON"),
	TRAIT(meta, "`_meta` of what is listed and of content"),
	TRAIT(links, "`resource_link` content; `lastModified`"),
	TRAIT(context, "`context` of completions"),
	TRAIT(form, "elicitation: forms"),
	TRAIT(url, "elicitation: URLs"),
	TRAIT(icons, "`icons`; `description` and `websiteUrl` of a server"),
	TRAIT(old_tasks, "tasks of the core protocol"),
#undef TRAIT
};

static_assert(sizeof(struct mcp_profile) == sizeof(char *) + (ARRAY_LEN(traits) + 7) / 8 * 8,
	      "a member of struct mcp_profile has no row here");

static void add(struct buf *b, const char *text)
{
	struct err e;

	assert_int_equal(buf_add(b, text, strlen(text), &e), 0);
}

static void add_heading(struct buf *b, const char *first)
{
	const struct mcp_profile *p;

	add(b, "| ");
	add(b, first);
	for (size_t i = 0; (p = mcp_profile_at(i)); i++) {
		add(b, " | ");
		add(b, p->version);
	}
	add(b, " |\n|---|");
	for (size_t i = 0; mcp_profile_at(i); i++)
		add(b, ":-:|");
	add(b, "\n");
}

static void add_features(struct buf *b)
{
	const struct mcp_profile *p;

	add_heading(b, "a message may have");
	for (size_t t = 0; t < ARRAY_LEN(traits); t++) {
		add(b, "| ");
		add(b, traits[t].name);
		for (size_t i = 0; (p = mcp_profile_at(i)); i++)
			add(b, *(const bool *)((const char *)p + traits[t].at) ? " | yes" : " | ");
		add(b, " |\n");
	}
}

static void add_methods(struct buf *b)
{
	const struct mcp_method *m;
	const struct mcp_profile *p;

	add_heading(b, "method");
	for (size_t k = 0; (m = mcp_method_at(k)); k++) {
		add(b, "| `");
		add(b, m->name);
		add(b, "`");
		for (size_t i = 0; (p = mcp_profile_at(i)); i++)
			add(b, mcp_method_in(m, p) ? " | yes" : " | ");
		add(b, " |\n");
	}
}

static void add_names(struct buf *b)
{
	const struct mcp_method *m;

	add(b, "| method | `Mcp-Name` is |\n|---|---|\n");
	for (size_t k = 0; (m = mcp_method_at(k)); k++) {
		if (!m->named)
			continue;
		add(b, "| `");
		add(b, m->name);
		add(b, "` | `params.");
		add(b, m->named);
		add(b, "` |\n");
	}
}

static const struct {
	const char *name;
	void (*print)(struct buf *b);
} tables[] = {
	{ "features", add_features },
	{ "methods", add_methods },
	{ "names", add_names },
};

/* --- what the document says --- */

static void read_file(struct buf *b)
{
	FILE *f = fopen(path, "re");
	struct err e;
	size_t n;

	assert_non_null(f);
	do {
		char *at = buf_reserve(b, 4096, &e);

		assert_non_null(at);
		n = fread(at, 1, 4096, f);
		buf_advance(b, n);
	} while (n > 0);
	fclose(f);
}

static void says_what_the_tables_say(void **state)
{
	autobuf struct buf doc = BUF_INIT(1 << 20);

	read_file(&doc);
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		autobuf struct buf want = BUF_INIT(1 << 16);
		char mark[64];
		const char *at;

		tables[i].print(&want);
		if (getenv("MCP_DOC_PRINT")) {
			printf("<!-- %s -->\n%s<!-- end -->\n", tables[i].name, want.p);
			continue;
		}
		snprintf(mark, sizeof(mark), "<!-- %s -->\n", tables[i].name);
		at = strstr(doc.p, mark);
		ROW_CHECK(at, tables[i].name);
		at += strlen(mark);
		if (strncmp(at, want.p, want.n) != 0 ||
		    strncmp(at + want.n, "<!-- end -->\n", 13) != 0)
			fail_msg("%s: the table \"%s\" should be:\n%s", path, tables[i].name,
				 want.p);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(says_what_the_tables_say) };

	if (argc != 2)
		return 2;
	path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
