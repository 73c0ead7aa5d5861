#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/files.h"

#define L struct file_listed
static const struct field listed_fields[] = {
	FIELD(L, name, .flags = FIELD_REQUIRED, .doc = "Name within the directory."),
	FIELD_ENUM(L, type, file_type_names, .flags = FIELD_REQUIRED,
		   .doc = "Type of the file; a symlink is not followed."),
	FIELD(L, size, .flags = FIELD_REQUIRED, .doc = "Size in bytes."),
	FIELD_NAMED(L, mode_text, "mode", .flags = FIELD_REQUIRED,
		    .doc = "Permission bits in octal, such as 0644."),
	FIELD_NAMED(L, modified_text, "modified_at", .flags = FIELD_REQUIRED,
		    .doc = "Time of modification, RFC 3339."),
};
#undef L
static const struct field_table listed_table = FIELD_TABLE(struct file_listed, listed_fields);
static const struct field listing_fields[] = {
	FIELD_OBJECTS(struct files_listing, entries, listed_table, .flags = FIELD_REQUIRED,
		      .doc = "Sorted by name."),
	FIELD(struct files_listing, truncated, .flags = FIELD_REQUIRED,
	      .doc = "There are more entries."),
};
const struct field_table tool_listing_table = FIELD_TABLE(struct files_listing, listing_fields);

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "path", .doc = "The working directory if absent." },
	{ "limit", .def = DEFAULT_INT(128), .doc = "Entries at most." },
};

const struct tool sandbox_list_files_tool = {
	.op = &files_list_op,
	.name = "sandbox_list_files",
	.title = "List a directory",
	.doc = "Lists a directory of a sandbox.",
	.members = OP_MEMBERS(members),
	.output = &tool_listing_table,
};
