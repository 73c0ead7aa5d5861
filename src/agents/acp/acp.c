#include "agents/acp/internal.h"

static const struct acp_handler *handler(const struct acp *a)
{
	return a->o.handler;
}

struct acp *acp_new(const struct acp_options *o, struct err *e)
{
	struct acp *a = calloc(1, sizeof(*a));

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	a->o = *o;
	return a;
}

struct acp *acp_enter(struct acp *a)
{
	a->entered++;
	return a;
}

void acp_leave(struct acp *a)
{
	if (!a || --a->entered != 0 || !a->freed)
		return;
	acp_ask_drop(a);
	buf_fini(&a->prompt);
	free(a->session_id);
	free(a);
}

void acp_free(struct acp *a)
{
	if (!a || a->freed)
		return;
	acp_enter(a);
	a->freed = true;
	a->state = ACP_OVER;
	acp_leave(a);
}

/* ---- what it is ----------------------------------------------------------------------------- */

bool acp_lives(const struct acp *a)
{
	return !a->freed && a->state != ACP_NEW && a->state != ACP_OVER;
}

bool acp_is_open(const struct acp *a)
{
	return acp_lives(a) && a->state >= ACP_IDLE;
}

enum acp_state acp_state(const struct acp *a)
{
	return a->state;
}

struct str acp_session_id(const struct acp *a)
{
	return str_of(a->session_id);
}

unsigned acp_asks(const struct acp *a)
{
	return a->asks_n;
}

uint64_t acp_strays(const struct acp *a)
{
	return a->strays;
}

/* ---- the end -------------------------------------------------------------------------------- */

void acp_end_turn(struct acp *a, struct str why, const struct err *e)
{
	if (a->state != ACP_PROMPTING && a->state != ACP_CANCELLING)
		return;
	acp_ask_withdraw(a, false);
	if (!acp_lives(a))
		return;
	a->state = ACP_IDLE;
	handler(a)->turn_ended(a->o.owner, why, e);
}

void acp_end(struct acp *a, const struct err *why)
{
	const struct err e = *why; /* it may belong to something that ends here */

	if (!acp_lives(a))
		return;
	acp_ask_withdraw(a, true);
	acp_end_turn(a, STR_NONE, &e);
	if (!acp_lives(a))
		return;
	a->state = ACP_OVER;
	handler(a)->over(a->o.owner, &e);
}

void acp_lost(struct acp *a, const struct err *why)
{
	AUTO(acp_leave) struct acp *in = acp_enter(a);

	acp_end(in, why);
}

/* ---- a turn --------------------------------------------------------------------------------- */

static void write_session(struct json_writer *w, const struct acp *a)
{
	json_put_text(w, "sessionId", a->session_id);
}

bool acp_takes_images(const struct acp *a)
{
	return a->can_images;
}

bool acp_refused(const struct acp *a)
{
	return a->refused;
}

static void write_member(struct json_writer *w, const char *key, struct str text)
{
	json_put_str(w, key, text);
}

static void write_block(struct json_writer *w, const struct acp_block *b)
{
	json_write_object(w);
	write_member(w, "type", b->image.p ? STR_LIT("image") : STR_LIT("resource_link"));
	write_member(w, "mimeType", b->type);
	if (b->image.p) {
		write_member(w, "data", b->image);
	} else {
		write_member(w, "name", b->name);
		write_member(w, "uri", b->uri);
		json_put_uint(w, "size", b->size);
	}
	json_write_object_end(w);
}

static int prompt_write(const struct acp *a, struct str text, const struct acp_block *blocks,
			size_t n, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	write_session(&w, a);
	json_put_array(&w, "prompt");
	json_write_object(&w);
	write_member(&w, "type", STR_LIT("text"));
	write_member(&w, "text", text);
	json_write_object_end(&w);
	for (size_t i = 0; i < n; i++)
		write_block(&w, &blocks[i]);
	json_write_array_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static int prompt_send(struct acp *a, struct str params, struct err *e)
{
	struct acp_out m;

	acp_out_request(&m, a, ACP_PROMPT);
	json_write_raw(&m.w, params);
	return acp_out_end(&m, e);
}

int acp_prompt(struct acp *a, struct str text, const struct acp_block *blocks, size_t n,
	       struct err *e)
{
	AUTO(acp_leave) struct acp *in = acp_enter(a);

	if (in->state != ACP_IDLE || in->freed)
		return err_set(e, ERR_CONFLICT, "the agent's session is not idle");
	buf_fini(&in->prompt);
	in->prompt = BUF_INIT(ACP_MESSAGE_MAX);
	if (prompt_write(in, text, blocks, n, &in->prompt, e) < 0)
		return -1;
	in->state = ACP_PROMPTING;
	in->accepted = false;
	in->was_refused = in->refused;
	in->refused = false;
	if (prompt_send(in, buf_str(&in->prompt), e) < 0) {
		in->state = ACP_IDLE;
		return -1;
	}
	if (!in->o.auth_method.p || in->authenticated)
		buf_fini(&in->prompt);
	return 0;
}

void acp_prompt_again(struct acp *a)
{
	struct err e;

	if (a->state != ACP_PROMPTING || a->prompt.n == 0) /* it was cancelled */
		acp_end_turn(a, STR_LIT("cancelled"), NULL);
	else if (prompt_send(a, buf_str(&a->prompt), &e) < 0)
		acp_end_turn(a, STR_NONE, &e);
	buf_fini(&a->prompt);
}

void acp_cancel(struct acp *a)
{
	AUTO(acp_leave) struct acp *in = acp_enter(a);
	struct acp_out m;
	struct err e;

	if (in->state != ACP_PROMPTING || in->freed)
		return;
	in->state = ACP_CANCELLING;
	acp_out_notification(&m, in, "session/cancel");
	json_write_object(&m.w);
	write_session(&m.w, in);
	json_write_object_end(&m.w);
	if (acp_out_end(&m, &e) < 0)
		acp_end(in, &e);
	else
		acp_ask_withdraw(in, false);
}

int acp_set(struct acp *a, enum acp_setting what, struct str id, struct str value, bool boolean,
	    struct err *e)
{
	static const char *const members[ACP_SETTINGS] = { "modeId", "modelId", "value" };
	AUTO(acp_leave) struct acp *in = acp_enter(a);
	struct acp_out m;

	if (!acp_is_open(in))
		return err_set(e, ERR_CONFLICT, "the agent has no session");
	if (in->version != 1 && what != ACP_SETTING_OPTION)
		return err_set(e, ERR_INVALID, "this agent has no modes");
	acp_out_request(&m, in, ACP_SET_MODE + what);
	json_write_object(&m.w);
	write_session(&m.w, in);
	if (what == ACP_SETTING_OPTION)
		json_put_str(&m.w, "configId", id);
	if (boolean) {
		json_put_text(&m.w, "type", "boolean");
		json_put_bool(&m.w, members[what], str_is(value, "true"));
	} else {
		json_put_str(&m.w, members[what], value);
	}
	json_write_object_end(&m.w);
	return acp_out_end(&m, e);
}
