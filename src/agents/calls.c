/* What an agent has told of its tool calls. A request for permission may have no more than the id
 * of one; what was told of it before then stands for what the request leaves out. */
#include "agents/internal.h"
#include "ask/question.h"

enum {
	MEMBER_MAX = 4 * QUESTION_WHOLE_MAX, /* bytes; a permission could not show more */
	BYTES_MAX = 4 << 20, /* of all calls; the oldest give way */
};

static const char *const call_names[CALL_MEMBERS] = { "title", "kind", "rawInput", "content",
						      "locations" };

static void call_drop_member(struct agent *a, struct agent_call *k, enum call_member m)
{
	if (!k->members[m])
		return;
	a->calls_bytes -= strlen(k->members[m]);
	free(take_ptr(k->members[m]));
}

static void call_drop(struct agent *a, struct agent_call *k)
{
	for (size_t m = 0; m < CALL_MEMBERS; m++)
		call_drop_member(a, k, m);
	*k = (struct agent_call){ 0 };
}

static struct agent_call *call_find(struct agent *a, struct str id)
{
	for (size_t i = 0; i < AGENT_CALLS_MAX; i++) {
		if (id.n && str_is(id, a->calls[i].id))
			return &a->calls[i];
	}
	return NULL;
}

static struct agent_call *call_make(struct agent *a, struct str id)
{
	struct agent_call *k = &a->calls[a->calls_at++ % AGENT_CALLS_MAX];

	call_drop(a, k);
	snprintf(k->id, sizeof(k->id), "%.*s", STR_ARG(id));
	return k;
}

static void call_keep(struct agent *a, struct agent_call *k, enum call_member m,
		      const struct json_val *v)
{
	autobuf struct buf b = BUF_INIT(MEMBER_MAX);
	struct json_writer w = json_writer(&b);
	struct err e;

	call_drop_member(a, k, m);
	json_write_val(&w, v);
	if (json_write_done(&w, &e) == 0)
		k->members[m] = mem_dup(b.p, b.n);
	k->cut[m] = !k->members[m]; /* until it is told anew */
	a->calls_bytes += b.n * (k->members[m] != NULL);
}

void agent_call_note(struct agent *a, const struct acp_update *u)
{
	struct agent_call *k = call_find(a, u->tool_call_id) ?: call_make(a, u->tool_call_id);

	for (size_t m = 0; m < CALL_MEMBERS; m++) {
		const struct json_val *v = json_get(u->all, call_names[m]);

		if (json_type(v) > JSON_NULL)
			call_keep(a, k, m, v);
	}
	for (unsigned i = 0; i < AGENT_CALLS_MAX && a->calls_bytes > BYTES_MAX; i++) {
		struct agent_call *old = &a->calls[(a->calls_at + i) % AGENT_CALLS_MAX];

		if (old != k)
			call_drop(a, old);
	}
}

int agent_call_about(struct agent *a, const struct acp_ask *q, struct call_about *ret,
		     struct err *e)
{
	const struct agent_call *k = call_find(a, q->permission.tool_call_id);

	*ret = (struct call_about){ 0 };
	for (size_t m = 0; m < CALL_MEMBERS; m++) {
		ret->v[m] = json_get(q->permission.tool_call, call_names[m]);
		if (json_type(ret->v[m]) > JSON_NULL || !k)
			continue;
		if (k->cut[m])
			return err_set(e, ERR_TOO_LARGE, "the call is too large to be shown");
		if (!k->members[m])
			continue;
		ret->docs[m] = json_parse(str_of(k->members[m]), NULL, e);
		if (!ret->docs[m])
			return -1;
		ret->v[m] = json_root(ret->docs[m]);
	}
	return 0;
}

void call_about_fini(struct call_about *c)
{
	for (size_t m = 0; m < CALL_MEMBERS; m++)
		json_free(c->docs[m]);
}

void agent_calls_free(struct agent *a)
{
	for (size_t i = 0; i < AGENT_CALLS_MAX; i++)
		call_drop(a, &a->calls[i]);
}
