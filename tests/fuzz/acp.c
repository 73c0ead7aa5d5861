/*
 * What an agent says to a client of the Agent Client Protocol. An input is lines. One that begins
 * with ! is something that the client's owner does (see `happen`); each other is a message, in
 * which $i is the id of the client's last request.
 *
 * Whatever comes, each prompt ends once, each request of the agent is answered or withdrawn once,
 * and what is sent is JSON on one line.
 */
#include <string.h>

#include "agents/acp/acp.h"
#include "fuzz.h"
#include "rpc/sniff.h"

enum { LINES_MAX = 256, TEXT_MAX = 1 << 20 };

static struct acp *acp;
static uint64_t id;
static unsigned answered, owed; /* requests of the agent */
static bool prompting, is_over, in_prompt;
static struct acp_ask *asks[ACP_ASKS_MAX];
static unsigned asks_n;

static void on_send(void *owner, struct str line)
{
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(line, NULL, &e);

	MUST(d && !memchr(line.p, '\n', line.n));
	if (!json_get(json_root(d), "method"))
		answered++;
	else
		(void)json_uint64(json_get(json_root(d), "id"), &id);
}

static void on_ready(void *owner, struct str session, bool kept)
{
	MUST(session.n > 0 && session.n <= ACP_ID_MAX);
}

static void on_update(void *owner, const struct acp_update *u)
{
	MUST(u->name.n > 0 && json_type(u->all) == JSON_OBJECT);
	MUST((u->kind != ACP_TOOL_CALL && u->kind != ACP_TOOL_UPDATE) || u->tool_call_id.n > 0);
}

static void on_asked(void *owner, struct acp_ask *q)
{
	MUST(asks_n < ACP_ASKS_MAX && !is_over);
	MUST(q->kind != ACP_ASK_PERMISSION || q->permission.options.n > 0);
	asks[asks_n++] = q;
}

static void on_withdrawn(void *owner, struct acp_ask *q)
{
	unsigned i = 0;

	while (i < asks_n && asks[i] != q)
		i++;
	MUST(i < asks_n);
	asks[i] = asks[--asks_n];
}

static void on_turn_ended(void *owner, struct str why, const struct err *e)
{
	MUST(prompting && !in_prompt && (why.n > 0 || e));
	prompting = false;
}

static void on_set(void *owner, const struct json_val *result, const struct err *e)
{
	MUST(!is_over && (!result || !e));
}

static void on_over(void *owner, const struct err *e)
{
	MUST(!is_over && !prompting && asks_n == 0 && e->code != ERR_NONE);
	is_over = true;
}

static const struct acp_handler handler = { on_send,	  on_ready,	 on_update, on_asked,
					    on_withdrawn, on_turn_ended, on_set,    on_over };

static void answer(bool well)
{
	static const struct err no = { ERR_PATH_NOT_FOUND, "no" };
	struct acp_ask *q;
	struct err e;

	if (asks_n == 0)
		return;
	q = asks[--asks_n];
	if (!well && q->kind != ACP_ASK_PERMISSION)
		acp_refuse(q, &no);
	else if (!well)
		acp_deny(q);
	else if (q->kind == ACP_ASK_PERMISSION)
		MUST(acp_permit(q, q->permission.options.p[0].id, &e) == 0);
	else if (q->kind == ACP_ASK_READ)
		acp_answer_content(q, q->read.path);
	else if (q->kind == ACP_ASK_TERMINAL)
		acp_answer_terminal(q, STR_LIT("t"));
	else if (q->kind == ACP_ASK_OUTPUT)
		acp_answer_output(q, q->terminal_id, false, &(struct acp_exit){ .over = true });
	else if (q->kind == ACP_ASK_EXIT)
		acp_answer_exit(q, &(struct acp_exit){ .has_code = true });
	else
		acp_answer_done(q);
}

static void happen(char what)
{
	struct rpc_sniff sniff = { 0 };
	const struct err large = { ERR_TOO_LARGE, "large" };
	struct err e;

	if (what == 'p') {
		in_prompt = true;
		prompting |= acp_prompt(acp, STR_LIT("p"), NULL, 0, &e) == 0;
		in_prompt = false;
	} else if (what == 'c') {
		acp_cancel(acp);
	} else if (what == 'm') {
		(void)!acp_set(acp, ACP_SETTING_MODE, STR_NONE, STR_LIT("m"), false, &e);
	} else if (what == 'd') {
		rpc_sniff_feed(&sniff, STR_LIT("{\"id\":3}"));
		acp_dropped(acp, &sniff, &large);
	} else {
		answer(what == 'a');
	}
}

static void say(struct str line)
{
	autobuf struct buf text = BUF_INIT(TEXT_MAX);
	struct err e;

	for (size_t i = 0; i < line.n; i++) {
		bool named = line.p[i] == '$' && i + 1 < line.n && line.p[i + 1] == 'i';

		MUST(named ? buf_addf(&text, &e, "%llu", (unsigned long long)id) == 0
			   : buf_add(&text, line.p + i, 1, &e) == 0);
		i += named;
	}
	owed++;
	acp_take(acp, buf_str(&text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct err gone = { ERR_AGENT, "gone" };
	static const struct acp_server server = { .name = STR_LIT("h"),
						  .url = STR_LIT("http://h") };
	struct acp_options o = { .handler = &handler,
				 .name = STR_LIT("h"),
				 .version = STR_LIT("1"),
				 .cwd = STR_LIT("/w"),
				 .files = true,
				 .terminals = true,
				 .servers = &server,
				 .n_servers = 1 };
	struct str rest = { (const char *)data, n };
	size_t lines = 0;
	struct err e;

	id = 0;
	answered = owed = asks_n = 0;
	prompting = is_over = false;
	if (n % 2)
		o.session_id = o.auth_method = STR_LIT("S");
	acp = acp_new(&o, &e);
	MUST(acp);
	acp_start(acp);
	while (rest.n > 0 && lines++ < LINES_MAX) {
		const char *end = memchr(rest.p, '\n', rest.n);
		struct str line = { rest.p, end ? (size_t)(end - rest.p) : rest.n };

		if (line.n == 2 && line.p[0] == '!')
			happen(line.p[1]);
		else if (line.n < TEXT_MAX / 32)
			say(line);
		rest.p += line.n + (end != NULL);
		rest.n -= line.n + (end != NULL);
	}
	MUST(asks_n == acp_asks(acp) && answered <= owed + lines);
	/* sometimes it is freed in the middle of everything */
	if (lines % 2 == 0) {
		acp_lost(acp, &gone);
		MUST(is_over && !prompting && asks_n == 0 && acp_asks(acp) == 0);
	}
	acp_free(acp);
	return 0;
}
