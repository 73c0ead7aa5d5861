/* Describes a server; --all also tries every way to speak to it. */
#include <stdio.h>

#include "cli/peer/peer.h"
#include "cli/common/safe.h"
#include "mcp/message/profile.h"

enum { TRIAL_MS = 5000 /* a server that does not know this revision may not answer */ };

struct discover_options {
	struct verb_options common;
	struct peer_options peer;
	bool all;
};

static const struct option_row rows[] = {
	OPTION(struct discover_options, all, OPTION_FLAG, "all", .letter = 'a',
	       .doc = "Try every revision over every transport, and list those that work."),
	PEER_ROWS(struct discover_options),
	HELP_ROW(struct discover_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static const char *era_name(const struct peer *p)
{
	return mcp_client_era(peer_client(p)) == MCP_MODERN ? "modern" : "legacy";
}

/* The members of an object that describe the connection. */
static void write_how(struct peer *p, struct json_writer *w)
{
	json_write_key(w, "revision");
	json_write_text(w, mcp_client_version(peer_client(p)));
	json_write_key(w, "era");
	json_write_text(w, era_name(p));
	json_write_key(w, "transport");
	json_write_text(w, peer_wire(p));
}

static void print_how(struct peer *p, const char *before)
{
	printf("%s%s (%s) over %s\n", before, mcp_client_version(peer_client(p)), era_name(p),
	       peer_wire(p));
}

static void print_json(struct peer *p)
{
	autobuf struct buf b = BUF_INIT(64 << 20);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	write_how(p, &w);
	json_write_key(&w, "result");
	json_write_val(&w, mcp_client_about(peer_client(p)));
	json_write_object_end(&w);
	peer_print_written(p, &w);
}

static void show_info(const struct json_val *info)
{
	if (!info) { /* modern servers may leave it out */
		puts("The server has not told its name.");
		return;
	}
	safe_short(stdout, json_str(json_get(info, "name")), 200);
	putchar(' ');
	safe_short(stdout, json_str(json_get(info, "version")), 100);
	if (json_get(info, "title")) {
		fputs("  ", stdout);
		safe_short(stdout, json_str(json_get(info, "title")), 200);
	}
	putchar('\n');
	safe_text(stdout, json_str(json_get(info, "description")), 4);
}

static void show_supported(const struct json_val *about)
{
	struct json_iter it = json_iter(json_get(about, "supportedVersions"));
	const char *before = "It says that it speaks ";

	while (json_next(&it)) {
		fputs(before, stdout);
		safe_short(stdout, json_str(it.val), 40);
		before = ", ";
	}
	if (json_len(json_get(about, "supportedVersions")) > 0)
		putchar('\n');
}

static int show_capabilities(const struct json_val *about, struct err *e)
{
	struct json_iter it = json_iter(json_get(about, "capabilities"));

	if (json_len(json_get(about, "capabilities")) > 0)
		puts("Capabilities:");
	while (json_next(&it)) {
		fputs("    ", stdout);
		safe_short(stdout, it.key, 200);
		if (json_len(it.val) > 0) {
			putchar(' ');
			if (safe_json(stdout, it.val, e) < 0)
				return -1;
		}
		putchar('\n');
	}
	return 0;
}

static void on_ready(struct peer *p)
{
	const struct json_val *about = mcp_client_about(peer_client(p));
	struct str instructions = json_str(json_get(about, "instructions"));
	struct err e = ERR_INIT;

	if (peer_options(p)->json) {
		print_json(p);
		return;
	}
	show_info(peer_info(p));
	print_how(p, "MCP ");
	show_supported(about);
	if (show_capabilities(about, &e) < 0) {
		peer_fail(p, PEER_OWN, &e);
		return;
	}
	if (instructions.n > 0) {
		puts("Instructions:");
		safe_text(stdout, instructions, 4);
	}
	peer_end(p, PEER_OK);
}

/* ---- all that works ------------------------------------------------------------------------ */

struct trial {
	bool json;
	struct json_writer w; /* of those that worked */
	size_t n;
};

static void on_worked(struct peer *p)
{
	struct trial *t = peer_state(p);

	t->n++;
	if (t->json) {
		json_write_object(&t->w);
		write_how(p, &t->w);
		json_write_object_end(&t->w);
	} else {
		print_how(p, "");
	}
	peer_end(p, PEER_OK);
}

/* Returns the exit status of the last trial: that of a signal, or meaningless. */
static int try_each(const struct verb_input *in, const struct discover_options *o, struct trial *t)
{
	struct peer_options one = o->peer;
	/* A program has one transport; an address may have two. */
	uint32_t from = o->peer.url ? 2 : 0, to = o->peer.url ? 3 : 0;
	int status = 0;

	one.quiet = true;
	if (!one.timeout_ms)
		one.timeout_ms = TRIAL_MS;
	for (size_t i = 0; mcp_profile_at(i) && status < 128; i++) {
		one.revision = mcp_profile_at(i)->version;
		for (one.transport = from; one.transport <= to && status < 128; one.transport++)
			status = peer_run(in, &one, on_worked, t);
	}
	return status;
}

static int try_all(const struct verb_input *in, const struct discover_options *o)
{
	autobuf struct buf found = BUF_INIT(1 << 16);
	struct trial t = { .json = o->peer.json, .w = json_writer(&found) };
	struct err e;
	int status;

	json_write_object(&t.w);
	json_write_key(&t.w, "works");
	json_write_array(&t.w);
	status = try_each(in, o, &t);
	if (status >= 128)
		return status;
	/* A particular choice says little about why it fails. */
	if (t.n == 0)
		status = peer_run(in, &o->peer, on_worked, &t);
	if (t.n == 0)
		return status;
	json_write_array_end(&t.w);
	json_write_object_end(&t.w);
	if (t.json && json_write_done(&t.w, &e) < 0)
		return cli_fail(&e);
	if (t.json)
		printf("%s\n", found.p);
	return 0;
}

static int discover_run(const struct verb_input *in, struct err *e)
{
	const struct discover_options *o = in->options;

	return o->all ? try_all(in, o) : peer_run(in, &o->peer, on_ready, NULL);
}

const struct verb mcp_discover_verb = {
	.name = "mcp discover",
	.usage = "[OPTION...]",
	.doc = "Describe an MCP server.",
	.more = PEER_MORE,
	.page = "holt-mcp-client",
	.options = &options,
	.size = sizeof(struct discover_options),
	.run = discover_run,
};
