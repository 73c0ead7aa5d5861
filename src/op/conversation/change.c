/* What people change of a conversation: conversation.update, .settings, .set_flags, .delete and
 * .restore. No agent gives itself rights. */
#include "op/conversation/conversation.h"
#include "call/guard.h"

/* ---- conversation.update --------------------------------------------------------------------- */

#define Q struct update_request
struct update_request {
	struct str conversation_id, title, description, login;
	struct field_map options;
	bool archived, has_archived;
};
static const struct field update_fields[] = {
	CONVERSATION_NAMED(Q),
	FIELD(Q, title, .max = TITLE_MAX, .doc = "Title for people."),
	FIELD(Q, description, .max = DESCRIPTION_MAX, .doc = "What it is about."),
	OPTIONS_ROW(Q),
	FIELD(Q, login, .min = 1, .max = OFFER_VALUE_MAX,
	      .doc = "Log in to its agent by this method (logins), and send failed prompts again."),
	FIELD(Q, archived, .has = FIELD_HAS(Q, has_archived),
	      .doc = "Archive it: its agent ends, and it takes no prompts. Its children stay."),
};
#undef Q
static const struct field_table update_table = FIELD_TABLE(struct update_request, update_fields);

/* What its agent does would be nobody's. */
static bool owner_ended(struct call *c, const struct conversation *t)
{
	const struct guard *g = call_guard(c);

	return g && g->knows && !g->knows(g->data, conversation_record(t)->owner);
}

static int update_apply(struct call *c, struct conversation *t, const struct update_request *q,
			struct err *e)
{
	struct conversation_record r = *conversation_record(t);

	if (q->has_archived && !q->archived && owner_ended(c, t))
		return err_set(e, ERR_CONFLICT, "the key of its owner has ended");
	if (q->title.p)
		r.name = q->title;
	if (q->description.p)
		r.description = q->description;
	if (q->options.n &&
	    conversation_options_merge(c, t, r.owner, &q->options, &r.options, e) < 0)
		return -1;
	if (q->options.n ? conversation_set_options(t, &r, e) < 0
			 : (q->title.p || q->description.p) && conversation_change(t, &r, e) < 0)
		return -1;
	if (q->login.p && conversation_login(t, q->login, e) < 0)
		return -1;
	return q->has_archived ? conversation_archive(t, q->archived, CONVERSATION_BY_PERSON, e)
			       : 0;
}

static void update_run(struct call *c, const void *request)
{
	const struct update_request *q = request;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_own(c, q->conversation_id, &e);

	if (t && update_apply(c, t, q, &e) == 0)
		conversation_answer(c, t);
	else
		call_fail(c, &e);
}

const struct op conversation_update_op = {
	.action = "conversation.update",
	.doc = "Changes the title, the description or the agent's options of a conversation, or "
	       "archives it.",
	.effect = OP_WRITE,
	.flags = OP_IDEMPOTENT,
	.request = &update_table,
	.result = &conversation_view_table,
	.run = update_run,
};

/* ---- conversation.settings and conversation.set_flags ---------------------------------------- */

struct named_request {
	struct str conversation_id;
};
static const struct field named_fields[] = { CONVERSATION_NAMED(struct named_request) };
static const struct field_table named_table = FIELD_TABLE(struct named_request, named_fields);

struct settings_view {
	struct conversation_flags settings;
};
static const struct field settings_fields[] = {
	FIELD_OBJECT(struct settings_view, settings, conversation_flags_table,
		     .flags = FIELD_REQUIRED,
		     .doc = "Flags that were set; others have their defaults."),
};
static const struct field_table settings_table = FIELD_TABLE(struct settings_view, settings_fields);

static void settings_answer(struct call *c, const struct conversation *t)
{
	call_answer(c, &(struct settings_view){ conversation_record(t)->advanced_settings });
}

static void settings_run(struct call *c, const void *request)
{
	const struct named_request *q = request;
	struct err e = ERR_INIT;
	const struct conversation *t = conversation_own(c, q->conversation_id, &e);

	if (t)
		settings_answer(c, t);
	else
		call_fail(c, &e);
}

const struct op conversation_settings_op = {
	.action = "conversation.settings",
	.doc = "Returns the permission flags that were set for a conversation.",
	.effect = OP_READ,
	.request = &named_table,
	.result = &settings_table,
	.run = settings_run,
};

struct set_flags_request {
	struct str conversation_id;
	struct conversation_flags settings;
};
static const struct field set_flags_fields[] = {
	CONVERSATION_NAMED(struct set_flags_request),
	FIELD_OBJECT(struct set_flags_request, settings, conversation_flags_table,
		     .flags = FIELD_REQUIRED, .doc = "Flags to set; others stay as they are."),
};
static const struct field_table set_flags_table = FIELD_TABLE(struct set_flags_request,
							      set_flags_fields);

static void set_flags_merge(struct conversation_flags *to, const struct conversation_flags *from)
{
#define FLAG(name_, ...)                                                                           \
	if (from->has_##name_) {                                                                   \
		to->name_ = from->name_;                                                           \
		to->has_##name_ = true;                                                            \
	}
	CONVERSATION_FLAGS(FLAG)
#undef FLAG
}

/* This flag answers what a person would be asked, so it takes what that answer takes. */
static int set_flags_check(struct call *c, const struct conversation *t,
			   const struct conversation_flags *f, struct err *e)
{
	return f->has_auto_approve_permissions && f->auto_approve_permissions
		     ? conversation_check_unattended(c, conversation_record(t)->owner,
						     "auto_approve_permissions", e)
		     : 0;
}

static void set_flags_run(struct call *c, const void *request)
{
	const struct set_flags_request *q = request;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_own(c, q->conversation_id, &e);
	struct conversation_record r = { 0 };

	if (t) {
		r = *conversation_record(t);
		set_flags_merge(&r.advanced_settings, &q->settings);
	}
	if (t && set_flags_check(c, t, &q->settings, &e) == 0 &&
	    conversation_change(t, &r, &e) == 0)
		settings_answer(c, t);
	else
		call_fail(c, &e);
}

const struct op conversation_set_flags_op = {
	.action = "conversation.set_flags",
	.doc = "Sets permission flags of a conversation; flags that are not named stay "
	       "as they are.",
	.effect = OP_WRITE,
	.flags = OP_IDEMPOTENT,
	.request = &set_flags_table,
	.result = &settings_table,
	.run = set_flags_run,
};

/* ---- conversation.flags ---------------------------------------------------------------------- */

struct flag_view {
	struct str name, label, description;
	bool def;
};
static const struct field flag_fields[] = {
	FIELD(struct flag_view, name, .flags = FIELD_REQUIRED, .doc = "Name of the flag."),
	FIELD(struct flag_view, label, .flags = FIELD_REQUIRED, .doc = "Label for people."),
	FIELD(struct flag_view, description, .flags = FIELD_REQUIRED, .doc = "What it allows."),
	FIELD_NAMED(struct flag_view, def, "default", .flags = FIELD_REQUIRED,
		    .doc = "Value if it was not set."),
};
static const struct field_table flag_table = FIELD_TABLE(struct flag_view, flag_fields);

struct flags_view {
	struct {
		struct flag_view *p;
		size_t n;
	} flags;
};
static const struct field flags_fields[] = {
	FIELD_OBJECTS(struct flags_view, flags, flag_table, .flags = FIELD_REQUIRED,
		      .doc = "All flags."),
};
static const struct field_table flags_table = FIELD_TABLE(struct flags_view, flags_fields);

static void flags_run(struct call *c, const void *request)
{
	struct flag_view rows[CONVERSATION_FLAGS_N];

	for (size_t i = 0; i < CONVERSATION_FLAGS_N; i++) {
		const struct conversation_flag_info *f = &conversation_flag_infos[i];

		rows[i] = (struct flag_view){ str_of(f->name), str_of(f->label),
					      str_of(f->description), f->def };
	}
	call_answer(c, &(struct flags_view){ { rows, ARRAY_LEN(rows) } });
}

const struct op conversation_flags_op = {
	.action = "conversation.flags",
	.doc = "Lists the permission flags and their defaults.",
	.effect = OP_READ,
	.request = &op_nothing_table,
	.result = &flags_table,
	.run = flags_run,
};

/* ---- conversation.delete and conversation.restore -------------------------------------------- */

struct delete_request {
	struct str conversation_id;
	bool children;
};
static const struct field delete_fields[] = {
	CONVERSATION_NAMED(struct delete_request),
	FIELD(struct delete_request, children, .def = DEFAULT_BOOL(false),
	      .doc = "Delete its children, too; otherwise a conversation with children is not "
		     "deleted."),
};
static const struct field_table delete_table = FIELD_TABLE(struct delete_request, delete_fields);

/* A child has no children (conversation.start). */
static int delete_children(struct conversation *t, struct err *e)
{
	struct conversation *child;
	size_t from = 0;

	for (; (child = conversation_child(t, &from)); from = 0) {
		if (conversation_delete(child, e) < 0)
			return -1;
	}
	return 0;
}

static void delete_run(struct call *c, const void *request)
{
	const struct delete_request *q = request;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_own(c, q->conversation_id, &e);

	if (!t || (q->children && delete_children(t, &e) < 0) || conversation_delete(t, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &(struct op_nothing){ 0 });
}

const struct op conversation_delete_op = {
	.action = "conversation.delete",
	.doc = "Moves a conversation to the trash, where it stays for 30 days.",
	.effect = OP_DESTROY,
	.request = &delete_table,
	.result = &op_nothing_table,
	.run = delete_run,
};

static struct conversation *restore_own(struct call *c, struct str id, struct err *e)
{
	struct conversations *all = conversation_person(c, e);
	struct conversation *t = all ? conversation_take_back(all, id, call_owner_seen(c), e)
				     : NULL;

	if (all && !t && e->code == ERR_CONVERSATION_NOT_FOUND)
		err_set(e, ERR_CONVERSATION_NOT_FOUND, "there is no conversation %.*s in the trash",
			STR_CUT(id, CONVERSATION_ID));
	return t;
}

static void restore_run(struct call *c, const void *request)
{
	const struct named_request *q = request;
	struct err e = ERR_INIT;
	struct conversation *t = restore_own(c, q->conversation_id, &e);

	if (t && owner_ended(c, t) && conversation_archive(t, true, CONVERSATION_BY_KEY, &e) < 0)
		t = NULL;
	if (t)
		conversation_answer(c, t);
	else
		call_fail(c, &e);
}

const struct op conversation_restore_op = {
	.action = "conversation.restore",
	.doc = "Restores a conversation from the trash.",
	.effect = OP_WRITE,
	.request = &named_table,
	.result = &conversation_view_table,
	.run = restore_run,
};
