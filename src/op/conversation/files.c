/*
 * Files that a person gives a conversation: conversation.files, .file, .add_file and .remove_file.
 * Their bytes leave as base64 in JSON alone, so that no browser ever takes one for a page.
 */
#include "base/base64.h"
#include "base/when.h"
#include "op/conversation/conversation.h"

/* ---- what is known of one -------------------------------------------------------------------- */

#define V struct file_view
struct file_view {
	struct str file_id, name, type, added_at;
	bool image;
	uint64_t size;
	struct str content; /* of conversation.file */
};
#define VIEW_ROWS                                                                                  \
	FIELD(V, file_id, .flags = FIELD_REQUIRED,                                                 \
	      .doc = "Id by which prompts name the "                                               \
		     "file."),                                                                     \
		FIELD(V, name, .flags = FIELD_REQUIRED,                                            \
		      .doc = "Name of the file, as it was "                                        \
			     "given."),                                                            \
		FIELD(V, type, .flags = FIELD_REQUIRED,                                            \
		      .doc = "Type by its first bytes: image/png, image/jpeg, image/gif, "         \
			     "image/webp, else application/octet-stream."),                        \
		FIELD(V, image, .flags = FIELD_REQUIRED,                                           \
		      .doc = "It is one of these image "                                           \
			     "types."),                                                            \
		FIELD(V, size, .flags = FIELD_REQUIRED, .doc = "Size in bytes."),                  \
		FIELD(V, added_at, .flags = FIELD_REQUIRED, .doc = "When it was added, RFC 3339.")
static const struct field view_fields[] = { VIEW_ROWS };
static const struct field_table view_table = FIELD_TABLE(V, view_fields);
static const struct field whole_fields[] = {
	VIEW_ROWS,
	FIELD(V, content, .flags = FIELD_REQUIRED | FIELD_NUL_OK | FIELD_BYTES,
	      .doc = "The whole content, in base64."),
};
static const struct field_table whole_table = FIELD_TABLE(V, whole_fields);
#undef V

static int file_describe(struct call *c, const struct attachment *a, struct file_view *ret,
			 struct err *e)
{
	struct arena *room = call_arena(c);
	char when[WHEN_MAX];

	when_text(when, a->added_ms);
	*ret = (struct file_view){ .file_id = { arena_dup(room, str_of(a->id), e), strlen(a->id) },
				   .name = { arena_dup(room, str_of(a->name), e), strlen(a->name) },
				   .type = str_of(a->type),
				   .added_at = { arena_dup(room, str_of(when), e), strlen(when) },
				   .image = a->image,
				   .size = a->size };
	return ret->file_id.p && ret->name.p && ret->added_at.p ? 0 : -1;
}

static void file_answer(struct call *c, const struct attachment *a)
{
	struct file_view view;
	struct err e = ERR_INIT;

	if (file_describe(c, a, &view, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

/* ---- conversation.files ---------------------------------------------------------------------- */

struct files_request {
	struct str conversation_id;
};
static const struct field files_request_fields[] = { CONVERSATION_NAMED(struct files_request) };
static const struct field_table files_request_table = FIELD_TABLE(struct files_request,
								  files_request_fields);

struct files_view {
	struct {
		const struct file_view *p;
		size_t n;
	} files;
};
static const struct field files_fields[] = {
	FIELD_OBJECTS(struct files_view, files, view_table, .flags = FIELD_REQUIRED,
		      .max = ATTACHMENTS_MAX, .doc = "The oldest first."),
};
static const struct field_table files_table = FIELD_TABLE(struct files_view, files_fields);

static int files_all(struct call *c, const struct conversation *t, struct files_view *ret,
		     struct err *e)
{
	struct attachment *all = arena_array(call_arena(c), ATTACHMENTS_MAX, sizeof(*all), e);
	struct file_view *views = arena_array(call_arena(c), ATTACHMENTS_MAX, sizeof(*views), e);
	int n = all && views ? attachments_list(conversation_folder(t), all, e) : -1;

	for (int i = 0; i < n; i++) {
		if (file_describe(c, &all[i], &views[i], e) < 0)
			return -1;
	}
	*ret = (struct files_view){ { views, n < 0 ? 0 : (size_t)n } };
	return n < 0 ? -1 : 0;
}

static void files_run(struct call *c, const void *request)
{
	const struct files_request *q = request;
	struct files_view view;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_own(c, q->conversation_id, &e);

	if (!t || files_all(c, t, &view, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

const struct op conversation_files_op = {
	.action = "conversation.files",
	.doc = "Lists the files of a conversation.",
	.effect = OP_READ,
	.request = &files_request_table,
	.result = &files_table,
	.run = files_run,
};

/* ---- conversation.add_file ------------------------------------------------------------------- */

#define Q struct add_request
struct add_request {
	struct str conversation_id, name, content;
};
static const struct field add_fields[] = {
	CONVERSATION_NAMED(Q),
	FIELD(Q, name, .flags = FIELD_REQUIRED, .min = 1, .max = ATTACHMENT_NAME_MAX,
	      .doc = "Name of the file, without a path."),
	FIELD(Q, content, .flags = FIELD_REQUIRED | FIELD_BYTES, .max = FILE_CONTENT_MAX,
	      .doc = "The whole content in base64: 4194304 bytes at most."),
};
#undef Q
static const struct field_table add_table = FIELD_TABLE(struct add_request, add_fields);

static int add_normalize(void *request, struct arena *a, struct err *e)
{
	struct add_request *q = request;

	return base64_replace(&q->content, a, e) < 0 ? err_wrap(e, "content") : 0;
}

static void add_run(struct call *c, const void *request)
{
	const struct add_request *q = request;
	struct attachment a;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_own(c, q->conversation_id, &e);

	if (!t || attachment_add(conversation_folder(t), q->name, q->content, &a, &e) < 0)
		call_fail(c, &e);
	else
		file_answer(c, &a);
}

const struct op conversation_add_file_op = {
	.action = "conversation.add_file",
	.doc = "Adds a file to a conversation, for prompts that name it.",
	.effect = OP_WRITE,
	.request = &add_table,
	.result = &view_table,
	.normalize = add_normalize,
	.run = add_run,
};

/* ---- conversation.file, conversation.remove_file --------------------------------------------- */

#define Q struct file_request
struct file_request {
	struct str conversation_id, file_id;
};
static const struct field file_fields[] = {
	CONVERSATION_NAMED(Q),
	FIELD(Q, file_id, .flags = FIELD_REQUIRED, .min = 1, .max = ATTACHMENT_ID,
	      .doc = "Id of the file."),
};
#undef Q
static const struct field_table file_table = FIELD_TABLE(struct file_request, file_fields);

static void file_run(struct call *c, const void *request)
{
	const struct file_request *q = request;
	autobuf struct buf bytes = BUF_INIT(ATTACHMENT_MAX);
	struct attachment a;
	struct file_view view;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_own(c, q->conversation_id, &e);

	if (!t || attachment_read(conversation_folder(t), q->file_id, &a, &bytes, &e) < 0 ||
	    file_describe(c, &a, &view, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	view.content = buf_str(&bytes);
	call_answer(c, &view);
}

const struct op conversation_file_op = {
	.action = "conversation.file",
	.doc = "Returns a file of a conversation with its whole content.",
	.effect = OP_READ,
	.request = &file_table,
	.result = &whole_table,
	.run = file_run,
};

static void remove_file_run(struct call *c, const void *request)
{
	const struct file_request *q = request;
	struct attachment a;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_own(c, q->conversation_id, &e);

	if (!t || attachment_read(conversation_folder(t), q->file_id, &a, NULL, &e) < 0 ||
	    attachment_remove(conversation_folder(t), q->file_id, &e) < 0)
		call_fail(c, &e);
	else
		file_answer(c, &a);
}

const struct op conversation_remove_file_op = {
	.action = "conversation.remove_file",
	.doc = "Removes a file of a conversation; prompts that name it are sent without it.",
	.effect = OP_DESTROY,
	.request = &file_table,
	.result = &view_table,
	.run = remove_file_run,
};
