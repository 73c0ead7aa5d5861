/* A file of another client: the first byte picks whose it is, or that it was pasted, and the rest
 * is the file. What is read of it is bounded, and the operator's file takes it. */
#include <string.h>

#include "cli/import/foreign.h"
#include "config/config.h"
#include "fuzz.h"
#include "guard/redact/redact.h"

enum { TEXT_BYTES = 4096, FOUND_MAX = 1 << 20 };

static const char *const names[] = { "vscode", "claude-code", "claude-desktop",
				     "cursor", "windsurf",    "gemini" };

static void note(void *data, struct str server, struct str text)
{
	MUST(text.n > 0 && text.n < 1024);
}

static void check(const struct foreign_found *found)
{
	struct buf text = BUF_INIT(4 * FOUND_MAX);
	struct err e = ERR_INIT;
	struct config *c;

	MUST(buf_addf(&text, &e,
		      "{\"modules\":{\"servers\":1024},\"inputs\":%.*s,\"mcpServers\":%.*s}",
		      STR_ARG(buf_str(&found->inputs)), STR_ARG(buf_str(&found->servers))) == 0);
	c = config_parse(buf_str(&text), "c", &e);
	MUST(c && config_file(c)->mcp_servers.n == found->n);
	config_unref(c);
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct redactor *redactor;
	struct buf text = BUF_INIT(FOREIGN_BYTES_MAX);
	struct foreign_found found = { BUF_INIT(FOUND_MAX), BUF_INIT(FOUND_MAX), 0, 0 };
	struct err e = ERR_INIT;
	struct json_doc *doc = NULL;
	struct foreign_options o = { .folder = STR_LIT("/home/me/p"), .note = note };

	if (!redactor)
		redactor = redactor_new(NULL, &e);
	MUST(redactor);
	o.redactor = redactor;
	if (n < 2 || n > TEXT_BYTES)
		return 0;
	o.client = foreign_client_find(names[data[0] % ARRAY_LEN(names)], &e);
	MUST(o.client && buf_add(&text, data + 1, n - 1, &e) == 0);
	if ((data[0] & 0x80) && foreign_paste(&text, STR_NONE, &e) < 0)
		MUST(e.code != ERR_BUG && e.msg[0]);
	else
		doc = foreign_parse(&text, &e);
	if ((data[0] & 0x80) && doc)
		MUST(foreign_client_of(json_root(doc)));
	if (!doc)
		MUST(e.code != ERR_BUG && e.msg[0]);
	else if (foreign_read(json_root(doc), &o, &found, &e) == 0)
		check(&found);
	else
		MUST(e.code != ERR_BUG);
	json_free(doc);
	buf_fini(&text);
	buf_fini(&found.servers);
	buf_fini(&found.inputs);
	return 0;
}
