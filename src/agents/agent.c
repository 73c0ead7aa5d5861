/*
 * The process of one conversation's agent:
 *
 *	texts of the file -> sandbox -> program -> session -> prompts
 *
 * Each step begins the next in a callback. What fails, or takes too long in all, ends it. The end
 * closes the program, then removes the sandbox, then frees it.
 */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "agents/internal.h"
#include "base/log.h"

enum {
	STOP_MS = 500,
	ARENA_MAX = 256 << 10,
	PORT_DIGITS = 12,
};

/* ---- the end -------------------------------------------------------------------------------- */

static void agent_on_timer_closed(uv_handle_t *h)
{
	struct agent *a = h->data;
	struct agents *all = a->all;

	if (--a->timers > 0)
		return;
	agent_terminals_free(a);
	agent_calls_free(a);
	acp_free(a->acp);
	texts_fini(&a->texts);
	config_unref(a->config);
	secret_free(a->token);
	if (a->bearer)
		explicit_bzero(a->bearer, strlen(a->bearer));
	free(a->bearer);
	free(a->prompt);
	for (unsigned i = 0; i < a->hosts_n; i++)
		free(a->hosts[i]);
	give_free(a->give);
	buf_fini(&a->say.text);
	agent_presets_free(a->presets);
	arena_fini(&a->arena);
	free(a);
	all->live--;
	agents_try_close(all);
}

static void agent_try_free(struct agent *a)
{
	if (!a->gone || a->jobs > 0)
		return;
	uv_close((uv_handle_t *)&a->limit, agent_on_timer_closed);
	uv_close((uv_handle_t *)&a->quiet, agent_on_timer_closed);
	uv_close((uv_handle_t *)&a->doom, agent_on_timer_closed);
}

void agent_on_job(struct agent *a)
{
	a->jobs--;
	agent_try_free(a);
}

static void agent_on_gone(void *owner)
{
	struct agent *a = owner;

	a->gone = true;
	agent_try_free(a);
}

static void agent_try_end(struct agent *a)
{
	if (a->linked || a->place.making)
		return;
	uv_timer_stop(&a->limit); /* else its turn would end it again */
	program_sandbox_end(&a->place);
}

static void agent_on_closed(void *owner)
{
	struct agent *a = owner;

	a->linked = false;
	agent_try_end(a);
}

/* In a turn of its own: a program is not closed from inside one of its callbacks. */
static void agent_on_end(uv_timer_t *t)
{
	struct agent *a = t->data;

	if (a->program)
		mcp_program_close(take_ptr(a->program), STOP_MS, agent_on_closed, a);
	else if (a->child)
		mcp_child_close(take_ptr(a->child), STOP_MS, agent_on_closed, a);
	else
		agent_try_end(a);
}

static void agent_end(struct agent *a)
{
	static const struct err over = { ERR_CANCELLED, "the agent is ended", "" };

	if (a->ending)
		return;
	a->ending = true;
	agent_say_end(a); /* what people have seen of it stays */
	agent_keep_mode(a);
	if (a->conversation)
		*conversation_driver_state(a->conversation) = NULL;
	a->conversation = NULL;
	a->turn = false;
	texts_cancel(&a->texts);
	uv_timer_stop(&a->quiet);
	uv_timer_stop(&a->doom);
	if (a->acp)
		acp_lost(a->acp, &over);
	agent_terminals_kill(a);
	uv_timer_start(&a->limit, agent_on_end, 0, 0);
}

/* Its turn is over; e: it failed. refused: by the agent's own answer. */
static void agent_turn_over(struct agent *a, const char *why, const struct err *e, bool refused)
{
	bool turn = a->turn;

	a->turn = false;
	uv_timer_stop(&a->quiet);
	if (!turn || !a->conversation)
		return;
	agent_say_end(a);
	agent_keep_mode(a);
	if (!a->conversation)
		return;
	if (e && refused)
		conversation_refused(a->conversation, e);
	else if (e)
		conversation_failed(a->conversation, e);
	else
		conversation_turn_end(a->conversation, why);
}

void agent_fail(struct agent *a, const struct err *e)
{
	struct conversation *t = a->conversation;
	bool turn = a->turn;

	if (a->ending)
		return;
	agent_end(a);
	if (t && turn)
		conversation_failed(t, e);
}

static void agent_on_doom(uv_timer_t *t)
{
	struct agent *a = t->data;

	agent_fail(a, &a->why);
}

void agent_fail_later(struct agent *a, const struct err *e)
{
	if (a->ending || uv_is_active((uv_handle_t *)&a->doom))
		return;
	a->why = *e;
	uv_timer_start(&a->doom, agent_on_doom, 0, 0);
}

/* ---- how long it may take ------------------------------------------------------------------- */

static void agent_on_late(uv_timer_t *t)
{
	struct agent *a = t->data;
	struct err e;

	err_set(&e, ERR_TIMEOUT, "it was not ready in %u s", a->conf->start_seconds);
	agent_last_words(a, &e);
	err_wrap(&e, "the agent");
	agent_fail(a, &e);
}

static void agent_on_cancel_late(uv_timer_t *t)
{
	struct agent *a = t->data;

	log_info("agent %.*s: it did not end its turn, and is ended", STR_ARG(a->conf->name));
	agent_turn_over(a, "cancelled", NULL, false);
	agent_end(a);
}

static void agent_on_quiet(uv_timer_t *t)
{
	struct agent *a = t->data;

	if (a->conversation)
		conversation_stalled(a->conversation, true);
}

void agent_heard(struct agent *a)
{
	if (!a->conversation || !a->turn)
		return;
	conversation_stalled(a->conversation, false);
	if (a->waits > 0)
		uv_timer_stop(&a->quiet);
	else
		uv_timer_start(&a->quiet, agent_on_quiet, a->conf->stall_seconds * 1000ull, 0);
}

/* ---- a turn --------------------------------------------------------------------------------- */

void agent_given(struct agent *a)
{
	AUTO(give_free) struct give *give = take_ptr(a->give);
	autofree char *prompt = take_ptr(a->prompt);
	size_t n = 0;
	const struct acp_block *blocks = give ? give_blocks(give, &n) : NULL;
	struct err e;

	agent_say_end(a); /* what came behind the turn before */
	if (conversation_turn_begin(a->conversation, &e) < 0 ||
	    acp_prompt(a->acp, str_of(prompt), blocks, n, &e) < 0)
		agent_turn_over(a, NULL, &e, false);
	else
		agent_heard(a);
}

void agent_not_given(struct agent *a, const struct err *e)
{
	if (a->ending)
		return;
	give_free(take_ptr(a->give));
	free(take_ptr(a->prompt));
	agent_turn_over(a, NULL, e, false);
}

static void agent_prompt(struct agent *a)
{
	if (a->give)
		give_start(a);
	else
		agent_given(a);
}

/* Keeps the agent's name for its session, to go on with it after this process. */
static int agent_note_session(struct agent *a, struct str id, struct err *e)
{
	struct conversation_record r = *conversation_record(a->conversation);

	if (str_eq(r.agent_session_id, id))
		return 0;
	r.agent_session_id = id;
	return conversation_change(a->conversation, &r, e);
}

static void agent_on_ready(void *owner, struct str session_id, bool kept)
{
	struct agent *a = owner;
	struct err e;

	if (!a->conversation)
		return;
	if (agent_note_session(a, session_id, &e) < 0)
		agent_fail(a, &e);
	else
		agent_options_start(a);
}

void agent_is_open(struct agent *a)
{
	if (a->opened)
		return;
	a->opened = true;
	uv_timer_stop(&a->limit);
	if (a->prompt)
		agent_prompt(a);
}

static void agent_on_update(void *owner, const struct acp_update *u)
{
	struct agent *a = owner;

	if (!a->conversation)
		return;
	agent_heard(a);
	agent_update(a, u);
}

static void agent_on_asked(void *owner, struct acp_ask *q)
{
	struct agent *a = owner;

	agent_heard(a);
	agent_say_end(a);
	if (a->conversation)
		agent_asked(a, q);
}

static void agent_on_withdrawn(void *owner, struct acp_ask *q)
{
	agent_withdrawn(owner, q);
}

static void agent_on_turn_ended(void *owner, struct str why, const struct err *e)
{
	struct agent *a = owner;
	char text[ACP_ID_MAX + 1];

	snprintf(text, sizeof(text), "%.*s", STR_CUT(why, ACP_ID_MAX));
	if (!a->ending)
		uv_timer_stop(&a->limit);
	agent_turn_over(a, text, e, acp_refused(a->acp));
}

static void agent_on_over(void *owner, const struct err *e)
{
	agent_fail(owner, e);
}

static void agent_send(void *owner, struct str line)
{
	struct agent *a = owner;

	if (a->program)
		mcp_program_send(a->program, line);
	else if (a->child)
		mcp_child_send(a->child, line, false);
}

static const struct acp_handler agent_acp = {
	.send = agent_send,
	.ready = agent_on_ready,
	.update = agent_on_update,
	.asked = agent_on_asked,
	.withdrawn = agent_on_withdrawn,
	.turn_ended = agent_on_turn_ended,
	.set = agent_on_set,
	.over = agent_on_over,
};

/* ---- its program ---------------------------------------------------------------------------- */

static void agent_on_line(void *owner, struct str line)
{
	struct agent *a = owner;

	acp_take(a->acp, line);
}

static void agent_on_long(void *owner, const struct rpc_sniff *sniff, const struct err *e)
{
	struct agent *a = owner;

	agent_on_dropped(a, e);
	acp_dropped(a->acp, sniff, e);
}

static void agent_on_program_end(void *owner, const struct err *why)
{
	struct agent *a = owner;
	struct err e = *why;

	e.code = e.code == ERR_TRANSPORT ? ERR_AGENT : e.code;
	agent_last_words(a, &e);
	err_wrap(&e, "the agent");
	acp_lost(a->acp, &e);
}

static const struct mcp_child_events agent_program = { agent_on_line, agent_on_long,
						       agent_on_stderr, agent_on_program_end };

static int agent_run(struct agent *a, struct err *e)
{
	const struct mcp_child_options o = { .argv = a->texts.target.argv,
					     .env_more = a->texts.target.env,
					     .cwd = a->cwd,
					     .tethered = true,
					     .line_max = ACP_MESSAGE_MAX,
					     .stop_ms = STOP_MS };

	if (a->place.sandbox)
		a->program = mcp_program_start(&program_sandbox_runner, &a->place, ACP_MESSAGE_MAX,
					       &agent_program, a, e);
	else
		a->child = mcp_child_start(a->all->loop, &o, &agent_program, a, e);
	a->linked = a->program || a->child;
	return a->linked ? 0 : -1;
}

/* Our own program, for agents that take no URL: only where they see it. */
static int agent_bridge(struct agent *a, struct acp_server *s, struct err *e)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
	char *copy;

	if (a->place.sandbox || n <= 0 || n == sizeof(path))
		return 0;
	copy = arena_dup(&a->arena, (struct str){ path, (size_t)n }, e);
	s->command = str_of(copy);
	return copy ? 0 : -1;
}

/* The hub's MCP server, with the conversation's token. */
static int agent_server(struct agent *a, int port, struct acp_server *s, struct err *e)
{
	static const struct str args[] = { STR_LIT("mcp"), STR_LIT("--connect") };
	struct acp_pair *header = arena_alloc(&a->arena, sizeof(*header), e);
	struct acp_pair *env = arena_alloc(&a->arena, sizeof(*env), e);
	struct str *list = arena_array(&a->arena, ARRAY_LEN(args) + 1, sizeof(*list), e);
	char *url = a->place.sandbox ? arena_printf(&a->arena, e, "http://" AGENT_HUB "/mcp")
				     : arena_printf(&a->arena, e, "http://127.0.0.1:%d/mcp", port);
	struct str token;

	a->token = conversation_token(a->conversation, e);
	if (!a->token || !header || !env || !list || !url)
		return -1;
	token = secret_expose(a->token, "given to the conversation's agent");
	if (asprintf(&a->bearer, "Bearer %.*s", STR_ARG(token)) < 0) {
		a->bearer = NULL;
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	*header = (struct acp_pair){ STR_LIT("Authorization"), str_of(a->bearer) };
	*env = (struct acp_pair){ STR_LIT("HOLT_TOKEN"),
				  { a->bearer + strlen("Bearer "), token.n } };
	memcpy(list, args, sizeof(args));
	list[ARRAY_LEN(args)] = str_of(url);
	*s = (struct acp_server){ .name = STR_LIT("holt"),
				  .url = str_of(url),
				  .headers = header,
				  .n_headers = 1,
				  .args = list,
				  .n_args = ARRAY_LEN(args) + 1,
				  .env = env,
				  .n_env = 1 };
	return agent_bridge(a, s, e);
}

static int agent_open(struct agent *a, int port, struct err *e)
{
	struct acp_server *server = arena_alloc(&a->arena, sizeof(*server), e);
	const char *earlier = arena_dup(&a->arena,
					conversation_record(a->conversation)->agent_session_id, e);
	struct acp_options o = { .handler = &agent_acp,
				 .owner = a,
				 .name = STR_LIT("holt"),
				 .version = STR_LIT(HOLT_VERSION),
				 .files = a->place.sandbox != NULL,
				 .terminals = a->place.sandbox != NULL,
				 .cwd = str_of(a->cwd),
				 .servers = server,
				 .n_servers = 1,
				 .auth_method = a->conf->auth_method };
	struct str login = conversation_record(a->conversation)->login;
	const char *method = login.n ? arena_dup(&a->arena, login, e) : NULL;

	if (!server || !earlier || (login.n && !method) || agent_server(a, port, server, e) < 0)
		return -1;
	if (method)
		o.auth_method = str_of(method);
	if (*earlier)
		o.session_id = str_of(earlier);
	a->acp = acp_new(&o, e);
	if (!a->acp || agent_run(a, e) < 0)
		return -1;
	acp_start(a->acp);
	return 0;
}

static void agent_on_made(void *owner, const struct err *err)
{
	struct agent *a = owner;
	struct err e = ERR_INIT;
	int port;

	if (a->ending) {
		agent_try_end(a);
		return;
	}
	if (err) {
		agent_fail(a, err);
		return;
	}
	port = a->all->port(a->all->owner, &e);
	if (port < 0 || agent_open(a, port, &e) < 0)
		agent_fail(a, &e);
}

/* ---- its sandbox ---------------------------------------------------------------------------- */

static int agent_make_sandbox(struct agent *a, struct err *e)
{
	int port = a->all->port(a->all->owner, e);
	char target[PORT_DIGITS];

	if (port < 0)
		return -1;
	snprintf(target, sizeof(target), "%d", port);
	if (net_rule_parse_service(STR_LIT(AGENT_HUB ":80"), str_of(target), &a->hub, e) < 0)
		return -1;
	a->place.service = &a->hub;
	program_sandbox_start(&a->place);
	return 0;
}

static void agent_on_texts(void *owner, const struct err *err)
{
	struct agent *a = owner;
	struct err e;

	if (err) {
		agent_fail(a, err);
		return;
	}
	a->texts.target.cwd = a->cwd;
	if (a->conf->program.sandbox.off)
		agent_on_made(a, NULL);
	else if (agent_make_sandbox(a, &e) < 0)
		agent_fail(a, &e);
}

/* Not from inside who starts it. */
static void agent_on_begin(uv_timer_t *t)
{
	struct agent *a = t->data;

	uv_timer_start(t, agent_on_late, a->conf->start_seconds * 1000ull, 0);
	texts_start(&a->texts);
}

/* A conversation with a workspace has it at the same place inside. */
static int agent_folders(struct agent *a, struct err *e)
{
	struct str dir = conversation_record(a->conversation)->working_dir;

	if (dir.n == 0 && a->conf->program.sandbox.off)
		return err_set(e, ERR_INVALID,
			       "an agent without a sandbox needs a conversation with a workspace");
	a->cwd = arena_dup(&a->arena, dir.n ? dir : STR_LIT("/workspace"), e);
	if (!a->cwd)
		return -1;
	if (dir.n) {
		a->volumes[a->place.n_more++] = (struct volume){ str_of(a->cwd), str_of(a->cwd),
								 VOLUME_RW, false };
		a->place.more = a->volumes;
	}
	return 0;
}

static struct agent *agent_new(struct agents *all, struct conversation *t, struct err *e)
{
	const struct config_agent *conf = config_agent_find(config_file(all->config),
							    conversation_record(t)->agent);
	struct agent *a;

	if (!conf || all->live >= AGENTS_MAX)
		return err_set(e, ERR_LIMIT, "%d agents run already", AGENTS_MAX), NULL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*a = (struct agent){ .all = all, .conversation = t };
	a->say.text = BUF_INIT(AGENT_SAY_MAX);
	arena_init(&a->arena, ARENA_MAX);
	if (agent_fill(a, conf, e) < 0 || agent_folders(a, e) < 0) {
		agent_presets_free(a->presets);
		arena_fini(&a->arena);
		free(a);
		return NULL;
	}
	a->config = config_ref(all->config);
	a->texts = (struct texts){ .of = all->place,
				   .config = a->config,
				   .server = &a->conf->program,
				   .on_texts = agent_on_texts,
				   .owner = a };
	a->place.texts = &a->texts;
	a->place.on_made = agent_on_made;
	a->place.on_gone = agent_on_gone;
	a->place.on_stderr = agent_on_stderr;
	a->place.on_refused = agent_on_refused;
	a->place.owner = a;
	uv_timer_init(all->loop, &a->limit);
	uv_timer_init(all->loop, &a->quiet);
	uv_timer_init(all->loop, &a->doom);
	a->limit.data = a->quiet.data = a->doom.data = a;
	a->timers = 3;
	all->live++;
	uv_timer_start(&a->limit, agent_on_begin, 0, 0);
	return a;
}

/* ---- the driver ----------------------------------------------------------------------------- */

static int agent_driver_start(void *data, struct conversation *t,
			      const struct conversation_prompt *p, struct err *e)
{
	struct agent **at = (struct agent **)conversation_driver_state(t);
	autofree char *prompt = mem_dup(p->message.p, p->message.n);
	AUTO(give_free) struct give *give = NULL;
	struct agents *all = data;
	struct agent *a = *at;

	if (all->check(all->owner, t, e) < 0)
		return -1;
	if (!prompt)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (p->files.n && !(give = give_new(&p->files, e)))
		return -1;
	if (!a)
		a = *at = agent_new(all, t, e);
	if (!a)
		return -1;
	free(a->prompt);
	a->prompt = take_ptr(prompt);
	give_free(a->give);
	a->give = take_ptr(give);
	a->turn = true;
	if (a->opened && acp_state(a->acp) == ACP_IDLE)
		agent_prompt(a);
	return 0;
}

static void agent_driver_cancel(void *data, struct conversation *t)
{
	static const struct err before = { ERR_CANCELLED, "it was cancelled before it began", "" };
	struct agent *a = *conversation_driver_state(t);

	if (!a || !a->turn)
		return;
	if (!a->acp || acp_state(a->acp) < ACP_IDLE || a->prompt) {
		agent_fail(a, &before);
		return;
	}
	if (acp_state(a->acp) == ACP_CANCELLING)
		return;
	uv_timer_start(&a->limit, agent_on_cancel_late, a->conf->cancel_seconds * 1000ull, 0);
	acp_cancel(a->acp);
}

static void agent_driver_close(void *data, struct conversation *t)
{
	struct agent *a = *conversation_driver_state(t);

	if (a)
		agent_end(a);
}

static void agent_driver_options(void *data, struct conversation *t)
{
	struct agent *a = *conversation_driver_state(t);

	if (a && a->opened)
		agent_options_start(a);
}

static bool agent_driver_part(void *data, struct conversation *t, struct conversation_part *ret)
{
	const struct agent *a = *conversation_driver_state(t);

	if (!a || a->say.text.n == 0)
		return false;
	*ret = (struct conversation_part){ agent_say_type(a), buf_str(&a->say.text),
					   a->say.pieces };
	return true;
}

const struct conversation_driver agent_driver = { agent_driver_start, agent_driver_cancel,
						  agent_driver_close, agent_driver_options,
						  agent_driver_part };
