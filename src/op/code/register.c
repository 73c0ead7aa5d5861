/*
 * code.register and code.unregister: JavaScript modules of clients, "ha:NAME" in code. The registry
 * keeps them by owner, so that they outlive the conversation and the hub. holt-js parses one before
 * it is kept, by a call of code.execute: its policy, approval and audit are those of code.
 */
#include "call/guard.h"
#include "modules/code/names.h"
#include "op/code/internal.h"
#include "op/module/module.h"
#include "op/ops.h"
#include "store/store.h"

enum {
	DESCRIPTION_MAX = 500,
	OWNER_BYTES_MAX = 4 << 20, /* of all sources of an owner */
	EXPORTS_MAX = 256,
};

struct register_request {
	struct str name, source, description;
	bool remove;
};
#define Q struct register_request
static const struct field request_fields[] = {
	FIELD(Q, name, .flags = FIELD_REQUIRED, .min = 1, .max = NAME_SERVER_MAX,
	      .doc = "Name of the module: a-z, 0-9 and -, a letter first. Code imports ha:NAME."),
	FIELD(Q, source, .min = 1, .max = CODE_SOURCE_MAX, .doc = "JavaScript, an ES module."),
	FIELD(Q, description, .max = DESCRIPTION_MAX, .doc = "What it is for."),
	FIELD_NAMED(Q, remove, "delete", .doc = "Delete it instead."),
};
#undef Q
static const struct field_table request_table = FIELD_TABLE(struct register_request,
							    request_fields);

struct registering {
	struct call *call, *check;
	const struct register_request *q;
	struct arena *arena; /* of the check */
};

#define A struct code_registered
static const struct field answer_fields[] = {
	FIELD(A, module, .flags = FIELD_REQUIRED, .doc = "Name that code imports."),
	FIELD(A, exports, .flags = FIELD_REQUIRED, .doc = "Names that it exports."),
	FIELD(A, deleted, .flags = FIELD_REQUIRED, .doc = "The module was deleted."),
};
#undef A
static const struct field_table answer_table = FIELD_TABLE(struct code_registered, answer_fields);

static void registering_fail(struct registering *k, const struct err *e)
{
	call_on_cancel(k->call, NULL, NULL);
	call_fail(k->call, e);
}

/* ---- what is kept --------------------------------------------------------------------------- */

/* holt-js may be hostile: only names are taken from it. */
static int exports_read(struct call *c, struct str json, struct field_strs *ret, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(json, NULL, e);
	struct json_iter it = json_iter(json_root(doc));
	struct str *p = arena_array(call_arena(c), EXPORTS_MAX, sizeof(*p), e);
	size_t n = 0;

	if (!doc || !p)
		return -1;
	while (json_next(&it) && n < EXPORTS_MAX) {
		struct str name = json_str(it.val);

		if (name.n > NAME_MAX_BYTES || !name_is_plain(name))
			continue;
		p[n] = (struct str){ arena_dup(call_arena(c), name, e), name.n };
		if (!p[n++].p)
			return -1;
	}
	*ret = (struct field_strs){ p, n };
	return 0;
}

static int exports_write(const struct field_strs *exports, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_array(&w);
	for (size_t i = 0; i < exports->n; i++)
		json_write_str(&w, exports->p[i]);
	json_write_array_end(&w);
	return json_write_done(&w, e);
}

/* The other modules of an owner, and of all keys of its line. */
struct room {
	struct call *call;
	struct str name;
	bool own;
	size_t n, bytes;
};

static int room_take(void *arg, const struct store_code *r, struct err *e)
{
	struct room *room = arg;

	if (room->own && str_eq(r->name, room->name))
		return 0;
	room->n++;
	room->bytes += r->source.n;
	return 0;
}

static int room_take_owner(void *arg, struct str owner, struct err *e)
{
	struct room *room = arg;
	const struct guard *g = call_guard(room->call);

	room->own = str_eq(owner, call_owner(room->call));
	if (!str_eq(guard_line(g, owner), guard_line(g, call_owner(room->call))))
		return 0;
	return store_codes(call_store(room->call), owner, STR_NONE, room_take, room, e);
}

static int room_check(struct call *c, const struct register_request *q, struct err *e)
{
	struct room room = { .call = c, .name = q->name };

	if (store_code_owners(call_store(c), room_take_owner, &room, e) < 0)
		return -1;
	if (room.n >= REGISTERED_MAX)
		return err_set(e, ERR_LIMIT, "%d modules are registered; delete one",
			       REGISTERED_MAX);
	if (room.bytes + q->source.n > OWNER_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "all registered modules have at most %d MiB together",
			       OWNER_BYTES_MAX >> 20);
	return 0;
}

struct lost {
	const struct guard *guard;
	struct arena *arena;
	struct str owner; /* STR_NONE: none was found */
};

static int lost_find(void *arg, struct str owner, struct err *e)
{
	struct lost *l = arg;

	if (l->owner.p || l->guard->knows(l->guard->data, owner))
		return 0;
	l->owner = (struct str){ arena_dup(l->arena, owner, e), owner.n };
	return l->owner.p ? 0 : -1;
}

/* Removes the modules of one key that is gone, each time one is added. */
static int lost_drop(struct call *c, struct err *e)
{
	struct lost l = { call_guard(c), call_arena(c), STR_NONE };

	if (!l.guard || !l.guard->knows)
		return 0;
	if (store_code_owners(call_store(c), lost_find, &l, e) < 0)
		return -1;
	return l.owner.p ? store_code_drop_all(call_store(c), l.owner, e) : 0;
}

static int register_keep(struct call *c, const struct register_request *q, struct str json,
			 struct code_registered *ret, struct err *e)
{
	autobuf struct buf exports = BUF_INIT(EXPORTS_MAX * (NAME_MAX_BYTES + 4));

	if (exports_read(c, json, &ret->exports, e) < 0 ||
	    exports_write(&ret->exports, &exports, e) < 0 || lost_drop(c, e) < 0 ||
	    room_check(c, q, e) < 0)
		return -1;
	return store_code_put(call_store(c),
			      &(struct store_code){ .owner = call_owner(c),
						    .name = q->name,
						    .source = q->source,
						    .description = q->description.p ? q->description
										    : STR_LIT(""),
						    .exports = buf_str(&exports) },
			      e);
}

static int register_answer(struct call *c, struct str name, struct code_registered *ret,
			   struct err *e)
{
	autobuf struct buf module = BUF_INIT(MODULE_NAME_MAX);

	if (buf_addf(&module, e, MODULE_REGISTERED "%.*s", STR_ARG(name)) < 0)
		return -1;
	ret->module = (struct str){ arena_dup(call_arena(c), buf_str(&module), e), module.n };
	return ret->module.p ? 0 : -1;
}

/* ---- the check ------------------------------------------------------------------------------ */

static int check_decode(void *client, void *request, struct err *e)
{
	const struct registering *k = client;
	struct code_request *q = request;

	field_defaults(code_execute_op.request, q);
	q->code = k->q->source;
	q->check = true;
	return 0;
}

static void check_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct registering *k = client;
	const struct code_answer *a = result;
	struct code_registered r = { .module = STR_NONE };
	struct err e = ERR_INIT;

	if (!a->ok) {
		if (a->error.has_place)
			err_set(&e, ERR_INVALID, "line %u, column %u: %.*s: %.*s", a->error.line,
				a->error.column, STR_CUT(a->error.name, 64),
				STR_CUT(a->error.message, 300));
		else
			err_set(&e, ERR_INVALID, "%.*s: %.*s", STR_CUT(a->error.name, 64),
				STR_CUT(a->error.message, 300));
	}
	if (!a->ok || register_keep(k->call, k->q, a->value, &r, &e) < 0 ||
	    register_answer(k->call, k->q->name, &r, &e) < 0) {
		registering_fail(k, &e);
		return;
	}
	call_on_cancel(k->call, NULL, NULL);
	call_answer(k->call, &r);
}

static void check_on_fail(void *client, const struct err *err)
{
	registering_fail(client, err);
}

static const struct op_sink check_sink = { .answer = check_on_answer, .fail = check_on_fail };

static void check_on_cancel(void *data)
{
	struct registering *k = data;

	call_cancel(k->check);
}

/* ---- the operations ------------------------------------------------------------------------- */

static int register_check(struct call *c, const struct register_request *q, struct err *e)
{
	if (!call_store(c))
		return err_set(e, ERR_UNSUPPORTED, "only a hub with a data folder keeps modules");
	return name_server(q->name, e);
}

static void register_run(struct call *c, const void *request)
{
	struct op_start start = { .op = &code_execute_op,
				  .decode = check_decode,
				  .sink = &check_sink };
	const struct register_request *q = request;
	struct registering *k;
	struct err e = ERR_INIT;

	k = register_check(c, q, &e) < 0 ? NULL : arena_alloc(call_arena(c), sizeof(*k), &e);
	if (k && !q->source.n) {
		err_set(&e, ERR_INVALID, "a source is missing");
		k = NULL;
	}
	if (k) {
		*k = (struct registering){ .call = c, .q = q };
		start.client = k;
		start.arena = call_arena(c);
		k->check = call_inner(c, &start, &e);
	}
	if (!k || !k->check) {
		call_fail(c, &e);
		return;
	}
	call_on_cancel(c, check_on_cancel, k);
	op_start(k->check);
}

const struct op code_register_op = {
	.action = "code.register",
	.doc = "Stores a JavaScript module that code of the same principal can import.",
	.effect = OP_EXECUTE,
	.flags = OP_IDEMPOTENT | OP_REPLACES | OP_COMMANDS,
	.request = &request_table,
	.result = &answer_table,
	.run = register_run,
};

static void unregister_run(struct call *c, const void *request)
{
	const struct register_request *q = request;
	struct code_registered r = { .deleted = true };
	struct err e = ERR_INIT;
	int was = register_check(c, q, &e) < 0
			? -1
			: store_code_drop(call_store(c), call_owner(c), q->name, &e);

	if (was == 0)
		err_set(&e, ERR_MODULE_NOT_FOUND, "no module \"%.*s\" is registered",
			STR_ARG(q->name));
	if (was <= 0 || register_answer(c, q->name, &r, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &r);
}

const struct op code_unregister_op = {
	.action = "code.unregister",
	.doc = "Deletes a registered module.",
	.effect = OP_EXECUTE,
	.request = &request_table,
	.result = &answer_table,
	.run = unregister_run,
};
