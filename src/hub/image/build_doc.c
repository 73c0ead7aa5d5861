#include "hub/image/build_doc.h"

enum { PATH_BYTES = 4000, WORDS_MAX = 1024, VALUE_MAX = 32 * 1024, ARENA_MAX = 4 << 20 };

static const struct field file_fields[] = {
	FIELD(struct build_file, from, .flags = FIELD_REQUIRED, .min = 1, .max = PATH_BYTES,
	      .doc = "A file or folder below the folder of holt.json; \".\" is all of it."),
	FIELD(struct build_file, to, .flags = FIELD_REQUIRED, .min = 1, .max = PATH_BYTES,
	      .doc = "Absolute path in the image. The contents of a folder are copied there; a "
		     "path that ends in a slash is a folder to put a file into."),
	FIELD(struct build_file, mode, .min = 3, .max = 4,
	      .doc = "Octal permissions, such as 755; by default those of the file."),
};
static const struct field_table file_table = FIELD_TABLE(struct build_file, file_fields);

static const struct field limit_fields[] = {
	FIELD(struct build_limits, memory_mb, .max = LIMIT_MEMORY_MAX / MIB,
	      .doc = "Memory in MiB, including files."),
	FIELD(struct build_limits, disk_mb, .max = LIMIT_MEMORY_MAX / MIB,
	      .doc = "Part of the memory that files may take, in MiB."),
	FIELD(struct build_limits, pids, .max = LIMIT_PIDS_MAX,
	      .doc = "Number of processes and threads."),
	FIELD(struct build_limits, open_files, .max = LIMIT_FILES_MAX,
	      .doc = "Number of open files of each program."),
	FIELD(struct build_limits, cpus, .max = LIMIT_CPU_MAX / 1000,
	      .doc = "Number of processors."),
};
static const struct field_table limits_table = FIELD_TABLE(struct build_limits, limit_fields);

static const char *const user_names[] = { "user", "root" };

#define WORDS(m, ...)                                                                              \
	FIELD(struct build_spec, m, .max = WORDS_MAX, .item_max = VALUE_MAX, __VA_ARGS__)

static const struct field spec_fields[] = {
	FIELD(struct build_spec, base, .min = 1, .max = 255, .def = DEFAULT_STR("host"),
	      .doc = "Base image, or host."),
	FIELD_OBJECTS(struct build_spec, files, file_table, .max = BUILD_FILES_MAX,
		      .doc = "Files to copy into the image, in this order."),
	FIELD(struct build_spec, env, .max = 128, .item_max = VALUE_MAX,
	      .doc = "Environment variables; they override those of the base."),
	FIELD(struct build_spec, workdir, .min = 1, .max = PATH_BYTES,
	      .doc = "Working directory of programs; created if it is missing."),
	FIELD(struct build_spec, user, .min = 1, .max = 64,
	      .doc = "Name of the sandbox's user in /etc/passwd."),
	WORDS(entrypoint, .has = FIELD_HAS(struct build_spec, has_entrypoint),
	      .doc = "Program that is run by default."),
	WORDS(cmd, .has = FIELD_HAS(struct build_spec, has_cmd),
	      .doc = "Arguments of the entrypoint, or the program."),
	FIELD_OBJECT(struct build_spec, network, network_wish_table,
		     .has = FIELD_HAS(struct build_spec, has_network),
		     .doc = "Network of its sandboxes, unless they ask for another."),
	FIELD(struct build_spec, run, .max = BUILD_STEPS_MAX, .item_min = 1,
	      .item_max = BUILD_STEP_MAX,
	      .doc = "Shell commands, run one after the other in a sandbox."),
	FIELD_ENUM(
		struct build_spec, run_user, user_names, .def = DEFAULT_ENUM(BUILD_USER),
		.doc = "User of these commands: user, with uid 1000, or root, as for sandboxes."),
	FIELD_OBJECT(struct build_spec, limits, limits_table,
		     .doc = "Limits of the sandbox for these commands."),
	FIELD(struct build_spec, timeout_seconds, .min = 1, .max = BUILD_TIMEOUT_MAX,
	      .def = DEFAULT_INT(BUILD_TIMEOUT_DEFAULT),
	      .doc = "Time limit of each command in seconds."),
};
const struct field_table build_spec_table = FIELD_TABLE(struct build_spec, spec_fields);

static bool is_octal(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '7')
			return false;
	}
	return true;
}

uint32_t build_file_mode(const struct build_file *f)
{
	uint32_t mode = 0;

	for (size_t i = 0; i < f->mode.n; i++)
		mode = mode * 8 + (uint32_t)(f->mode.p[i] - '0');
	return mode;
}

struct limits build_limits(const struct build_spec *s)
{
	return (struct limits){
		.memory = s->limits.memory_mb * MIB,
		.disk = s->limits.disk_mb * MIB,
		.pids = s->limits.pids,
		.cpu_milli = (uint32_t)(s->limits.cpus * 1000),
		.files = s->limits.open_files,
		.root = s->run_user == BUILD_ROOT,
	};
}

static int build_doc_check(struct build_spec *s, struct arena *a, struct err *e)
{
	for (size_t i = 0; i < s->files.n; i++) {
		const struct build_file *f = &s->files.p[i];

		if (f->to.p[0] != '/')
			return err_set(e, ERR_INVALID, "files[%zu].to: an absolute path", i);
		if (!is_octal(f->mode) || build_file_mode(f) > 0777 ||
		    (f->mode.n && build_file_mode(f) == 0))
			return err_set(e, ERR_INVALID,
				       "files[%zu].mode: three octal digits, such as 755", i);
	}
	for (size_t i = 0; i < s->env.n; i++) {
		struct str key = s->env.p[i].key;

		if (key.n == 0 || memchr(key.p, '=', key.n))
			return err_set(e, ERR_INVALID, "env: a name is not empty and has no \"=\"");
	}
	if (s->workdir.p && s->workdir.p[0] != '/')
		return err_set(e, ERR_INVALID, "workdir: an absolute path");
	return s->has_network ? network_wish_normalize(&s->network, a, e) : 0;
}

int build_read(struct image_doc *d, struct str text, struct build_spec *ret, struct err *e)
{
	d->json = json_parse(text, NULL, e);
	d->arena = d->json ? arena_new(ARENA_MAX) : NULL;
	if (d->json && !d->arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (!d->json || field_decode(&build_spec_table, json_root(d->json), d->arena, ret, e) < 0 ||
	    build_doc_check(ret, d->arena, e) < 0)
		return err_wrap(e, "holt.json");
	return 0;
}
