#pragma once
/*
 * holt.json, from which an image is built. Strict: unknown members are refused, so a misspelt one
 * does not pass silently. No I/O.
 */
#include "box/wire/limits.h"
#include "hub/image/doc.h"
#include "net/json/hosts.h"

enum {
	BUILD_FILES_MAX = 256,
	BUILD_STEPS_MAX = 64,
	BUILD_STEP_MAX = 16 * 1024, /* characters of one */
	BUILD_TIMEOUT_DEFAULT = 600, /* seconds, for each step */
	BUILD_TIMEOUT_MAX = 86400,
};

/* A file, or a folder with its contents. */
struct build_file {
	struct str from, to, mode;
};

struct build_files {
	struct build_file *p;
	size_t n;
};

struct build_limits {
	uint64_t memory_mb, disk_mb;
	uint32_t pids, open_files;
	double cpus;
};

struct build_spec {
	struct str base;
	struct build_files files;
	struct field_map env;
	struct str workdir, user; /* STR_NONE: the base's */
	bool has_entrypoint, has_cmd, has_network;
	struct field_strs entrypoint, cmd;
	struct network_wish network; /* of sandboxes of it */
	struct field_strs run; /* lines for the shell of the base */
	enum build_user { BUILD_USER, BUILD_ROOT } run_user; /* who they are */
	struct build_limits limits; /* of the sandbox that they run in */
	uint32_t timeout_seconds; /* of each */
};
extern const struct field_table build_spec_table;

/* ERR_INVALID names the wrong member. *ret borrows from *d, which must be zeros before. */
int build_read(struct image_doc *d, struct str text, struct build_spec *ret,
	       struct err *e) MUST_USE;

/* The requested permissions of a file; 0: its own. */
uint32_t build_file_mode(const struct build_file *f);

struct limits build_limits(const struct build_spec *s);
