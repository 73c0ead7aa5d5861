#include "hub/core/listing.h"

#include <stdio.h>

#include "hub/core/when.h"

static const char *const type_names[] = {
	[FILE_REGULAR] = "file",
	[FILE_DIRECTORY] = "directory",
	[FILE_SYMLINK] = "symlink",
	[FILE_OTHER] = "other",
};

static const struct field view_fields[] = {
	FIELD(struct file_view, name, .flags = FIELD_REQUIRED, .doc = "In its directory."),
	FIELD_ENUM(struct file_view, type, type_names, .flags = FIELD_REQUIRED,
		   .doc = "What it is; a symlink is not followed."),
	FIELD(struct file_view, size, .flags = FIELD_REQUIRED, .doc = "Bytes."),
	FIELD(struct file_view, mode, .flags = FIELD_REQUIRED,
	      .doc = "Permission bits in octal, such as 0644."),
	FIELD(struct file_view, modified_at, .flags = FIELD_REQUIRED, .doc = "RFC 3339."),
};
static const struct field_table view_table = FIELD_TABLE(struct file_view, view_fields);

static const struct field listing_fields[] = {
	FIELD_OBJECTS(struct listing, entries, view_table, .flags = FIELD_REQUIRED,
		      .doc = "By name."),
	FIELD(struct listing, truncated, .flags = FIELD_REQUIRED,
	      .doc = "There are more than these 1024."),
};
const struct field_table listing_table = FIELD_TABLE(struct listing, listing_fields);

int listing_fill(struct arena *a, const struct file_entry *entries, size_t n, bool truncated,
		 struct listing *ret, struct err *e)
{
	struct file_view *views = arena_array(a, n, sizeof(*views), e);

	for (size_t i = 0; views && i < n; i++) {
		const struct file_stat *st = &entries[i].st;
		char *modified = arena_alloc(a, WHEN_MAX, e);
		char *mode = arena_printf(a, e, "%04o", st->mode & 07777);

		if (!modified || !mode)
			return -1;
		when_text(modified, st->mtime_ms);
		views[i] = (struct file_view){ entries[i].name, st->type, st->size, str_of(mode),
					       str_of(modified) };
	}
	*ret = (struct listing){ .entries = { views, n }, .truncated = truncated };
	return views ? 0 : -1;
}
