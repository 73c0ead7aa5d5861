#pragma once
/*
 * The operator's file, config.json: JSON (RFC 8259) with comments, read strictly. What is unknown,
 * of a wrong type or out of bounds is refused with the file's name, the line and the JSON pointer.
 * Each section is a struct with a field table, from which its JSON Schema is printed too.
 *
 * What was read never changes; who uses it holds a reference.
 */
#include "json/field/field.h"

enum {
	CONFIG_BYTES_MAX = 1 << 20,
	CONFIG_LIST_MAX = 1024, /* entries of a list, at most */
	CONFIG_NAME_MAX = 64, /* characters of a rule's, a preset's or a secret's name */
	CONFIG_TEXT_MAX = 1024, /* characters of patterns, paths and other texts */
	CONFIG_PLACE_MAX = 96, /* "config.json:12" */
};

/* ---- sections ------------------------------------------------------------------------------ */

enum config_then { CONFIG_ALLOW, CONFIG_ASK, CONFIG_DENY, CONFIG_THENS };
extern const char *const config_then_names[CONFIG_THENS]; /* "allow" and so on */

/* An empty list matches everything. Texts are patterns, in which '*' stands for any characters. */
struct config_rule {
	struct str name;
	struct field_strs who, tools, actions, effects;
	struct field_map when; /* JSON pointers into the canonical request, and patterns */
	enum config_then then;
	unsigned line; /* not of the file's: where it stands */
};

struct config_rules {
	struct config_rule *p;
	size_t n;
};

struct config_policy {
	enum config_then def; /* what no rule matches */
	struct config_rules rules;
	unsigned line;
};

/* Each may be without a limit: has_. */
struct config_limits {
	uint64_t sandboxes, forks, wall_seconds, cpu_seconds, bytes_out;
	bool has_sandboxes, has_forks, has_wall_seconds, has_cpu_seconds, has_bytes_out;
};

/* Of a principal: what it has less than the hub. has_: without it the list is the hub's. */
struct config_principal {
	struct str name; /* "local", "token", "key:NAME"; '*' stands for any characters */
	struct config_policy policy;
	struct field_strs images, network, secrets;
	struct config_limits limits;
	bool has_images, has_network, has_secrets;
	unsigned line;
};

struct config_principals {
	struct config_principal *p;
	size_t n;
};

struct config_preset {
	struct str name;
	struct field_strs rules; /* "pypi.org:443" */
};

struct config_network {
	struct {
		struct config_preset *p;
		size_t n;
	} presets;
};

/* One of env, file, command and store. */
struct config_secret {
	struct str name;
	struct str env, file, ca;
	struct field_strs command, hosts;
	bool store;
};

struct config_secrets {
	struct config_secret *p;
	size_t n;
};

struct config_approvals {
	struct field_strs elicitation; /* of principals */
	struct str webhook;
	uint64_t expire_seconds;
};

struct config_audit {
	bool off;
	uint32_t file_mb, files, days; /* 0: as guard/audit/log.h says */
};

struct config_redaction {
	bool off;
	struct field_strs without; /* kinds */
	struct field_map patterns; /* kind: expression */
};

struct config_file {
	struct config_policy policy;
	struct field_strs images;
	bool has_images;
	unsigned images_line;
	struct config_network network;
	struct config_limits limits;
	struct config_principals principals;
	struct config_secrets secrets;
	struct config_approvals approvals;
	struct config_audit audit;
	struct config_redaction redaction;
};

/* One file each, src/config/SECTION.c. */
extern const struct field_table config_policy_table;
extern const struct field_table config_network_table;
extern const struct field_table config_limits_table;
extern const struct field_table config_principal_table;
extern const struct field_table config_secret_table;
extern const struct field_table config_approvals_table;
extern const struct field_table config_audit_table;
extern const struct field_table config_redaction_table;
/* Of the whole file. */
extern const struct field_table config_table;

/* ---- reading ------------------------------------------------------------------------------- */

struct config;

/* path: copied. must: else a file that is not there is one that says nothing. ERR_DENIED where
 * others than its owner may write it, or its owner is neither this user nor root; ERR_INVALID with
 * its place where something in it is wrong. */
struct config *config_open(const char *path, bool must, struct err *e) MUST_USE;

/* The same of a text. name: of the file, for messages. */
struct config *config_parse(struct str text, const char *name, struct err *e) MUST_USE;

struct config *config_ref(struct config *c);
void config_unref(struct config *c); /* NULL-safe */
AUTO_DEFINE(config_unref, struct config)

const struct config_file *config_file(const struct config *c);
/* The path that it was opened by; NULL: it was parsed from a text. */
const char *config_path(const struct config *c);
/* Whether there is a file. */
bool config_exists(const struct config *c);
/* "config.json:12", in ret. */
const char *config_place(const struct config *c, unsigned line, char ret[CONFIG_PLACE_MAX]);

/* Writes the JSON Schema of the file. */
void config_schema(struct json_writer *w);
