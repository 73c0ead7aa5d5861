/* /v1/files/…: what is in a sandbox, by path. */
#include "door/http/common.h"

#include "op/files.h"

/* ---- read and write ------------------------------------------------------------------------ */

#define CONTENT_ROWS(flags_)                                                                       \
	FIELD(struct file_content, content, .flags = FIELD_REQUIRED | FIELD_NUL_OK | (flags_),     \
	      .doc = "Content that was read. Text may be a few bytes shorter than the limit, so "  \
		     "that no character is cut."),                                                 \
		FIELD(struct file_content, size, .flags = FIELD_REQUIRED,                          \
		      .doc = "Size of the whole file in bytes."),                                  \
		FIELD_ENUM(struct file_content, encoding, file_encoding_names,                     \
			   .flags = FIELD_REQUIRED, .doc = "Encoding of content."),                \
		FIELD(struct file_content, eof, .flags = FIELD_REQUIRED,                           \
		      .doc = "Whether the end of the file was reached."),                          \
		FIELD(struct file_content, next_offset,                                            \
		      .has = FIELD_HAS(struct file_content, has_next),                             \
		      .doc = "Offset of the next part; absent at the end of the file.")

static const struct field text_fields[] = { CONTENT_ROWS(0) };
static const struct field_table text_table = FIELD_TABLE(struct file_content, text_fields);
static const struct field bytes_fields[] = { CONTENT_ROWS(FIELD_BYTES) };
static const struct field_table bytes_table = FIELD_TABLE(struct file_content, bytes_fields);

static const void *show_content(struct call *c, const void *result, const struct field_table **t,
				struct err *e)
{
	const struct file_content *r = result;

	*t = r->encoding == FILE_UTF8 ? &text_table : &bytes_table;
	return r;
}

static const struct op_member write_members[] = {
	{ "mode_octal", .in = OP_HIDDEN },
	{ "make_parents", .in = OP_HIDDEN },
};

static const struct field written_fields[] = {
	FIELD(struct file_written, status, .flags = FIELD_REQUIRED, .doc = "Always \"ok\"."),
};
static const struct field_table written_table = FIELD_TABLE(struct file_written, written_fields);

/* ---- list ---------------------------------------------------------------------------------- */

#define L struct file_listed
static const struct field entry_fields[] = {
	FIELD(L, name, .flags = FIELD_REQUIRED, .doc = "Name without the directory."),
	FIELD(L, is_dir, .flags = FIELD_REQUIRED, .doc = "Whether it is a directory."),
	FIELD_ENUM(L, type, file_type_names, .flags = FIELD_REQUIRED, .doc = "Type of the entry."),
	FIELD(L, size, .flags = FIELD_REQUIRED, .doc = "Size in bytes."),
	FIELD(L, mode, .flags = FIELD_REQUIRED, .doc = "Permission bits, as a number."),
	FIELD(L, modified_at, .flags = FIELD_REQUIRED,
	      .doc = "Time of the last change, in seconds since 1970."),
};
#undef L
static const struct field_table entry_table = FIELD_TABLE(struct file_listed, entry_fields);
static const struct field listing_fields[] = {
	FIELD_OBJECTS(struct files_listing, entries, entry_table, .flags = FIELD_REQUIRED,
		      .doc = "Entries, sorted by name."),
	FIELD(struct files_listing, truncated, .flags = FIELD_REQUIRED,
	      .doc = "Whether there are more entries."),
};
static const struct field_table listing_table = FIELD_TABLE(struct files_listing, listing_fields);

static const struct op_member list_members[] = {
	{ "path", .presence = OP_REQUIRED,
	  .doc = "Absolute path, or relative to the sandbox's working directory." },
};

/* ---- the others ---------------------------------------------------------------------------- */

static const struct field done_fields[] = {
	FIELD(struct files_done, status, .flags = FIELD_REQUIRED, .doc = "Always \"ok\"."),
};
static const struct field_table done_table = FIELD_TABLE(struct files_done, done_fields);

static const struct field info_fields[] = {
	FIELD(struct file_info, path, .flags = FIELD_REQUIRED, .doc = "Path, as in the request."),
	FIELD(struct file_info, is_dir, .flags = FIELD_REQUIRED,
	      .doc = "Whether it is a directory."),
	FIELD_ENUM(struct file_info, type, file_type_names, .flags = FIELD_REQUIRED,
		   .doc = "Type of the file."),
	FIELD(struct file_info, size, .flags = FIELD_REQUIRED, .doc = "Size in bytes."),
	FIELD(struct file_info, mode, .flags = FIELD_REQUIRED,
	      .doc = "Permission bits, as a number."),
	FIELD(struct file_info, modified_at, .flags = FIELD_REQUIRED,
	      .doc = "Time of the last change, in seconds since 1970."),
};
static const struct field_table info_table = FIELD_TABLE(struct file_info, info_fields);

/* ---- the rows ------------------------------------------------------------------------------ */

#define FILE_ROUTE(name_, ...)                                                                     \
	{                                                                                          \
		.id = "files." #name_, .op = &files_##name_##_op, .projected = true,               \
		.method = HTTP_POST, .path = "/v1/files/" #name_,                                  \
		.errors = API_MAY_SANDBOX | API_MAY(FILE_FAILED) | API_MAY(FORBIDDEN), __VA_ARGS__ \
	}

static const struct api_route rows[] = {
	FILE_ROUTE(read, .answer = &text_table, .show = show_content),
	FILE_ROUTE(write, .answer = &written_table, .members = OP_MEMBERS(write_members),
		   .body_max = FILES_WRITE_MAX),
	FILE_ROUTE(list, .answer = &listing_table, .members = OP_MEMBERS(list_members)),
	FILE_ROUTE(stat, .answer = &info_table),
	FILE_ROUTE(mkdir, .answer = &done_table),
	FILE_ROUTE(remove, .answer = &done_table),
	FILE_ROUTE(move, .answer = &done_table),
};
const struct api_resource api_files = API_RESOURCE(rows);
