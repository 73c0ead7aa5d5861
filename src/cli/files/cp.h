#pragma once
/* The two directions of `holt cp`. Paths are as typed. */
#include "cli/link/link.h"

enum { CP_PATH_MAX = 4096, CP_URL_MAX = 16 << 10 };

/* One side of the copy: in a sandbox if it has a name. */
struct cp_end {
	char name[128]; /* "": here */
	const char *path;
};

int cp_down(struct hub_link *l, const struct cp_end *from, const char *to, struct err *e) MUST_USE;
int cp_up(struct hub_link *l, const char *from, const struct cp_end *to, struct err *e) MUST_USE;

/* Says that some of a tree was not copied, if text is not empty: how many, and the first names. */
void cp_tell_left_out(const char *text);

/* The kind of file that a path of the sandbox names. */
enum cp_kind { CP_NOTHING, CP_FILE, CP_DIRECTORY };
int cp_look(struct hub_link *l, const struct cp_end *at, enum cp_kind *ret, struct err *e) MUST_USE;

/* "/v1/sandboxes/NAME/archive?path=…" */
int cp_url(char ret[CP_URL_MAX], const char *name, const char *path, struct err *e) MUST_USE;

/* The destination of a copy to `path`: a directory and a name in it; "." for all its contents.
 * The type of `path` decides between path/own and path itself. Both have CP_PATH_MAX bytes. */
int cp_place(const char *path, enum cp_kind is, const char *own, bool of_directory, char *ret_dir,
	     char *ret_name, struct err *e) MUST_USE;

/* The last part of a path; "." if that means its contents: "/", or an end in "/." or "..". */
void cp_own_name(const char *path, char ret[CP_PATH_MAX]);
