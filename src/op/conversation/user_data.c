/* conversation.set_user_data: attributes that the workspace of a conversation allows (rc.h). They
 * are kept in the conversation's folder, as {"attributes":[{"name":…,"value":…}]}, beside copies of
 * the files that allow them: once there is an agent, it can make such files in the workspace. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "agents/store/document.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "op/conversation/conversation.h"
#include "op/conversation/rc.h"

#define DATA_NAME "user-data.json"

struct user_attribute {
	struct str name, value;
};
static const struct field attribute_fields[] = {
	FIELD(struct user_attribute, name, .flags = FIELD_REQUIRED, .max = USER_DATA_NAME_MAX,
	      .doc = "Name of the attribute."),
	FIELD(struct user_attribute, value, .flags = FIELD_REQUIRED, .max = USER_DATA_VALUE_MAX,
	      .doc = "Value, as it was set."),
};
static const struct field_table attribute_table = FIELD_TABLE(struct user_attribute,
							      attribute_fields);

struct user_data {
	struct {
		struct user_attribute *p;
		size_t n;
	} attributes;
};
static const struct field data_fields[] = {
	FIELD_OBJECTS(struct user_data, attributes, attribute_table, .flags = FIELD_REQUIRED,
		      .max = USER_DATA_MAX, .doc = "In the order in which they were first set."),
};
static const struct field_table data_table = FIELD_TABLE(struct user_data, data_fields);

/* What is there; in the call's arena, with room for one more. */
static int data_load(struct call *c, const struct conversation *t, struct user_data *ret,
		     struct err *e)
{
	struct arena *a = call_arena(c);
	struct user_attribute *p = arena_array(a, USER_DATA_MAX + 1, sizeof(*p), e);
	AUTO(json_free)
	struct json_doc *doc = p ? document_read(conversation_folder(t), DATA_NAME, e) : NULL;
	struct user_data read;
	const struct user_data *kept;

	*ret = (struct user_data){ { p, 0 } };
	if (!doc)
		return p && e->code == ERR_PATH_NOT_FOUND ? 0 : -1;
	if (field_decode(&data_table, json_root(doc), a, &read, e) < 0 ||
	    !(kept = field_copy(&data_table, &read, a, conversation_keep, a, e)))
		return -1;
	for (size_t i = 0; i < kept->attributes.n; i++)
		p[ret->attributes.n++] = kept->attributes.p[i];
	return 0;
}

int user_data_read(struct call *c, const struct conversation *t, struct field_map *ret,
		   struct err *e)
{
	struct field_pair *pairs = arena_array(call_arena(c), USER_DATA_MAX, sizeof(*pairs), e);
	struct user_data all;

	if (!pairs || data_load(c, t, &all, e) < 0)
		return -1;
	for (size_t i = 0; i < all.attributes.n; i++)
		pairs[i] = (struct field_pair){ all.attributes.p[i].name,
						all.attributes.p[i].value };
	*ret = (struct field_map){ pairs, all.attributes.n };
	return 0;
}

/* ---- the schema ------------------------------------------------------------------------------ */

static int schema_open_folder(const struct conversation *t, struct err *e)
{
	struct str dir = conversation_record(t)->working_dir;
	char path[PATH_MAX];
	int fd = -1;

	if (dir.n && dir.n < sizeof(path)) {
		memcpy(path, dir.p, dir.n);
		path[dir.n] = '\0';
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return fd >= 0 ? fd : err_set(e, ERR_INVALID, "the conversation has no workspace");
}

/* The text of a small file in the workspace, which is a stranger's. 0: there is none. */
static int schema_read_file(int folder, const char *name, struct buf *to, struct err *e)
{
	autoclose int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	char *room;
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%s of the workspace is no file", name);
	room = buf_reserve(to, RC_BYTES_MAX, e);
	n = room ? read(fd, room, RC_BYTES_MAX) : -1;
	if (n < 0 || st.st_size > RC_BYTES_MAX)
		return err_set(e, ERR_INVALID, "%s of the workspace can't be read", name);
	buf_advance(to, (size_t)n);
	return 1;
}

static const char *const schema_names[] = { ".holtrc", ".mittorc" };

/* From the conversation's copies. */
static int schema_read(struct call *c, const struct conversation *t,
		       struct rc_field ret[RC_FIELDS_MAX], struct err *e)
{
	autobuf struct buf text = BUF_INIT(RC_BYTES_MAX);

	for (size_t i = 0; i < ARRAY_LEN(schema_names); i++) {
		int got = schema_read_file(conversation_folder(t), schema_names[i], &text, e);
		char *kept = got > 0 ? arena_dup(call_arena(c), buf_str(&text), e) : NULL;
		int n;

		if (got < 0 || (got > 0 && !kept))
			return -1;
		if (!got)
			continue;
		n = rc_read((struct str){ kept, text.n }, ret, call_arena(c), e);
		return n < 0 ? err_wrap(e, "%s", schema_names[i]) : n;
	}
	return 0;
}

/* Whether an agent may have made the file. In the folder of its own conversation it can't write one
 * that was there before (box/wire/project.h). */
static bool schema_is_of_agent(const struct conversations *all, const struct conversation *t,
			       const char *name)
{
	struct str dir = conversation_record(t)->working_dir;

	for (size_t i = 0; i < conversations_count(all); i++) {
		const struct conversation *other = conversations_at(all, i);
		const struct conversation_record *r = conversation_record(other);
		size_t n = r->working_dir.n;

		/* one that never had a prompt never had an agent: its making was cut off, say */
		if (other == t || r->archived || !n || n > dir.n ||
		    memcmp(dir.p, r->working_dir.p, n) != 0 ||
		    (!r->last_user_message_at.n && !r->agent_session_id.n &&
		     conversation_queue_length(other) == 0))
			continue;
		if (n == dir.n ? faccessat(conversation_folder(other), name, F_OK, 0) < 0
			       : dir.p[n] == '/' || dir.p[n - 1] == '/')
			return true;
	}
	return false;
}

int user_data_keep_schema(const struct conversations *all, const struct conversation *t,
			  const struct conversation *parent, struct err *e)
{
	autobuf struct buf text = BUF_INIT(RC_BYTES_MAX);
	struct err why = ERR_INIT;
	autoclose int folder = parent ? -1 : schema_open_folder(t, &why);
	int from = parent ? conversation_folder(parent) : folder;

	for (size_t i = 0; i < ARRAY_LEN(schema_names) && from >= 0; i++) {
		const char *name = schema_names[i];
		int got;

		text.n = 0;
		if (!parent && schema_is_of_agent(all, t, name))
			continue;
		got = schema_read_file(from, name, &text, &why);
		if (got < 0)
			log_info("conversation %s: %s", conversation_id(t), why.msg);
		if (got > 0 && document_write(conversation_folder(t), name, buf_str(&text), e) < 0)
			return -1;
	}
	return 0;
}

static int schema_check_url(struct str value, struct err *e)
{
	const char *end = memmem(value.p, value.n, "://", 3);
	size_t n = end ? (size_t)(end - value.p) : 0;

	for (size_t i = 0; i < value.n; i++) {
		if ((unsigned char)value.p[i] <= ' ' || value.p[i] == 127)
			n = 0;
	}
	for (size_t i = 0; i < n; i++) {
		char low = (char)(value.p[i] | 0x20);

		if (low < 'a' || low > 'z')
			n = 0;
	}
	return n && n + 3 < value.n ? 0 : err_set(e, ERR_INVALID, "value: no URL with a scheme");
}

/* A file of the workspace. What is outside of it is nobody's to probe. */
static int schema_check_file(int folder, struct str value, struct err *e)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	char path[PATH_MAX];
	autoclose int fd = -1;
	struct stat st;

	if (value.n < sizeof(path) && !memchr(value.p, '\0', value.n)) {
		memcpy(path, value.p, value.n);
		path[value.n] = '\0';
		fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
	}
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
		     ? 0
		     : err_set(e, ERR_INVALID, "value: no file of the workspace");
}

static int schema_check(int folder, const struct rc_field *f, struct str value, struct err *e)
{
	if (!value.n || f->type == RC_STRING)
		return 0;
	return f->type == RC_URL ? schema_check_url(value, e) : schema_check_file(folder, value, e);
}

static int schema_allows(struct call *c, const struct conversation *t, struct str key,
			 struct str value, struct err *e)
{
	struct rc_field fields[RC_FIELDS_MAX];
	autoclose int folder = schema_open_folder(t, e);
	int n = folder < 0 ? -1 : schema_read(c, t, fields, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_INVALID,
			       "the workspace allowed no attributes when the conversation was made "
			       "(conversations.user_data of its .holtrc)");
	for (int i = 0; i < n; i++) {
		if (str_eq(fields[i].name, key))
			return schema_check(folder, &fields[i], value, e);
	}
	return err_set(e, ERR_INVALID, "key: the workspace allows no attribute \"%.*s\"",
		       STR_CUT(key, USER_DATA_NAME_MAX));
}

/* ---- conversation.set_user_data -------------------------------------------------------------- */

#define Q struct set_request
struct set_request {
	struct str session_id, key, value;
};
static const struct field set_fields[] = {
	SESSION_ROW(Q),
	FIELD(Q, key, .flags = FIELD_REQUIRED, .min = 1, .max = USER_DATA_NAME_MAX,
	      .doc = "Name of an attribute that the workspace's .holtrc allows."),
	FIELD(Q, value, .flags = FIELD_REQUIRED, .max = USER_DATA_VALUE_MAX,
	      .doc = "Value that fits the attribute's type: string, url, or filename in the "
		     "workspace. Empty: removes the attribute."),
};
#undef Q
static const struct field_table set_table = FIELD_TABLE(struct set_request, set_fields);

struct set_view {
	bool success;
	struct str key, value;
};
static const struct field set_view_fields[] = {
	FIELD(struct set_view, success, .flags = FIELD_REQUIRED, .doc = "Always true."),
	FIELD(struct set_view, key, .flags = FIELD_REQUIRED, .doc = "Name of the attribute."),
	FIELD(struct set_view, value, .flags = FIELD_REQUIRED, .doc = "Value, as it was given."),
};
static const struct field_table set_view_table = FIELD_TABLE(struct set_view, set_view_fields);

static int data_set(struct call *c, struct conversation *t, const struct set_request *q,
		    struct err *e)
{
	struct user_data all;
	autofree char *text = NULL;
	size_t i;

	if (schema_allows(c, t, q->key, q->value, e) < 0 || data_load(c, t, &all, e) < 0)
		return -1;
	i = 0;
	while (i < all.attributes.n && !str_eq(all.attributes.p[i].name, q->key))
		i++;
	if (i == all.attributes.n)
		all.attributes.n++;
	all.attributes.p[i] = (struct user_attribute){ q->key, q->value };
	if (q->value.n == 0)
		memmove(&all.attributes.p[i], &all.attributes.p[i + 1],
			(--all.attributes.n - i) * sizeof(*all.attributes.p));
	if (all.attributes.n > USER_DATA_MAX)
		return err_set(e, ERR_LIMIT, "a conversation has at most %d attributes",
			       USER_DATA_MAX);
	text = field_encode_text(&data_table, &all, DOCUMENT_MAX, e);
	return text ? document_write(conversation_folder(t), DATA_NAME, str_of(text), e) : -1;
}

static void set_run(struct call *c, const void *request)
{
	const struct set_request *q = request;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_to_read(c, q->session_id, STR_NONE, &e);

	if (t && data_set(c, t, q, &e) == 0)
		call_answer(c, &(struct set_view){ true, q->key, q->value });
	else
		call_fail(c, &e);
}

const struct op conversation_set_user_data_op = {
	.action = "conversation.set_user_data",
	.doc = "Sets an attribute of a conversation that its workspace allows.",
	.effect = OP_WRITE,
	.flags = OP_IDEMPOTENT,
	.request = &set_table,
	.result = &set_view_table,
	.run = set_run,
};
