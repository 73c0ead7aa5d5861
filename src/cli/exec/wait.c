/* `holt wait`: waits until an exec has ended, or has printed a text or a match of a pattern. */
#include "cli/exec/job.h"
#include "cli/common/verb.h"

enum { EXIT_HOLT = 125, EXIT_NOT_SEEN = 1, EXIT_OVER = 124 };

struct wait_options {
	struct verb_options common;
	const char *text, *pattern, *since;
	uint32_t stream;
	uint64_t timeout_ms;
};

static const char *const streams[] = { NULL, "stdout", "stderr" };

static const struct option_row rows[] = {
	OPTION(struct wait_options, text, OPTION_TEXT, "text", .arg = "TEXT",
	       .doc = "Also stop waiting when it has printed this text."),
	OPTION(struct wait_options, pattern, OPTION_TEXT, "pattern", .arg = "REGEX",
	       .doc = "Also stop waiting when a line matches this regular expression."),
	OPTION(struct wait_options, since, OPTION_TEXT, "since-offset", .arg = "N",
	       .doc = "Search from this offset of both streams; by default 0."),
	OPTION(struct wait_options, stream, OPTION_CHOICE, "stream", .arg = "stdout|stderr",
	       .doc = "Search only this stream."),
	OPTION(struct wait_options, timeout_ms, OPTION_SECONDS, "timeout", .letter = 't',
	       .arg = "TIME", .min = 1, .max = 86400000,
	       .doc = "Time limit for waiting; by default none. The exec continues."),
	HELP_ROW(struct wait_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int wait_ask(const struct verb_input *in, struct hub_link *l, struct json_doc **ret,
		    struct err *e)
{
	const struct wait_options *o = in->options;
	autobuf struct buf text = BUF_INIT(64 << 10);
	struct json_writer w = json_writer(&text);
	char exec[JOB_ID_MAX + 1], path[JOB_WORDS_MAX];
	uint64_t offset;

	if (job_offset(o->since, &offset, e) < 0 ||
	    job_choose(l, in->operands[0], in->n_operands > 1 ? in->operands[1] : NULL, exec, e) <
		    0 ||
	    job_path(path, in->operands[0], exec, "/wait", e) < 0)
		return -1;
	json_write_object(&w);
	hub_link_text(&w, "text", o->text);
	hub_link_text(&w, "pattern", o->pattern);
	hub_link_text(&w, "stream", streams[o->stream]);
	json_write_key(&w, "offset");
	json_write_uint(&w, offset);
	json_write_key(&w, "timeout_seconds");
	json_write_uint(&w, (o->timeout_ms + 999) / 1000);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	return hub_link_ask(l, "POST", path, buf_str(&text), ret, e);
}

static int wait_run(const struct verb_input *in)
{
	const struct wait_options *o = in->options;
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct str result;
	int64_t code;

	if (!l || wait_ask(in, l, &doc, &e) < 0)
		return hub_link_fail(&e);
	result = json_str(json_get(json_root(doc), "result"));
	if (str_is(result, "matched"))
		return 0;
	if (str_is(result, "timeout"))
		return EXIT_OVER;
	if (o->text || o->pattern)
		return EXIT_NOT_SEEN;
	return json_int64(json_get(json_root(doc), "exit_code"), &code) ? (int)code : EXIT_HOLT;
}

const struct verb wait_verb = {
	.name = "wait",
	.usage = "[OPTION...] NAME [EXEC]",
	.doc = "Wait until an exec of a sandbox has ended.",
	.more = "The exit status is the command's, 124 if the wait timed out, 125 if the exec\n"
		"never ran or was lost. With --text or --pattern: 0 if that was printed,\n"
		"1 if the exec ended without it.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct wait_options),
	.min_operands = 1,
	.max_operands = 2,
	.usage_exit = EXIT_HOLT,
	.run = wait_run,
};
