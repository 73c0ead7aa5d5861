#include "config/config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "config/internal.h"
#include "json/document/where.h"

enum {
	VALUES_MAX = 1 << 16,
	NESTED_MAX = 16,
	ARENA_MAX = 16 << 20,
};

struct config {
	unsigned refs;
	char *path; /* NULL: parsed from a text */
	const char *name; /* the last component of it, for messages */
	bool exists;
	struct buf text; /* without comments */
	struct json_doc *doc; /* of that */
	struct arena arena;
	struct config_file file;
};

/* ---- the whole file ------------------------------------------------------------------------ */

static const struct field file_fields[] = {
	FIELD_OBJECT(struct config_file, policy, config_policy_table,
		     .doc = "Rules for the calls of all clients."),
	FIELD(struct config_file, images, .max = CONFIG_LIST_MAX, .item_min = 1,
	      .item_max = CONFIG_TEXT_MAX, .has = FIELD_HAS(struct config_file, has_images),
	      .doc = "Templates that sandboxes may be made from: host, image names, or patterns. "
		     "Default: all."),
	FIELD(struct config_file, env, .max = CONFIG_LIST_MAX, .item_min = 1,
	      .item_max = CONFIG_TEXT_MAX,
	      .doc = "Environment variables that decide what programs load, such as PATH and "
		     "LD_PRELOAD, or patterns of them, that requests of the contract may set. "
		     "Default: none."),
	FIELD_OBJECT(struct config_file, network, config_network_table,
		     .doc = "Named lists of network rules, and how the hub reaches hosts."),
	FIELD_OBJECT(struct config_file, limits, config_limits_table,
		     .doc = "Limits for all clients together."),
	FIELD_OBJECT(struct config_file, storage, config_storage_table,
		     .doc = "Limits of stored data."),
	FIELD_DICT(struct config_file, principals, config_principal_table, .max = CONFIG_LIST_MAX,
		   .item_min = 1, .item_max = CONFIG_NAME_MAX,
		   .doc = "Further restrictions for principals, by name or pattern: local, token, "
			  "key:NAME, conversation:ID."),
	FIELD_DICT(struct config_file, secrets, config_secret_table, .max = CONFIG_LIST_MAX,
		   .item_min = 1, .item_max = CONFIG_NAME_MAX,
		   .doc = "Secrets by name, and where their values are stored."),
	FIELD_OBJECT(struct config_file, approvals, config_approvals_table,
		     .doc = "How people are asked for approval."),
	FIELD_OBJECT(struct config_file, audit, config_audit_table,
		     .doc = "The audit log, a record of every call."),
	FIELD_OBJECT(
		struct config_file, redaction, config_redaction_table,
		.doc = "Redaction: which secrets are removed from everything that leaves the hub."),
	FIELD_OBJECT(struct config_file, tls, config_tls_table,
		     .has = FIELD_HAS(struct config_file, has_tls),
		     .doc = "TLS for the addresses that holt serve listens on."),
	FIELD_NAMED_DICT(struct config_file, mcp_servers, "mcpServers", config_server_table,
			 .max = CONFIG_LIST_MAX, .item_min = 1, .item_max = CONFIG_SERVER_NAME_MAX,
			 .doc = "MCP servers whose tools agents may use, by name."),
	FIELD_OBJECT(struct config_file, modules, config_modules_table,
		     .doc = "Whether MCP servers are used, and how many."),
	FIELD_OBJECTS(struct config_file, inputs, config_input_table, .max = CONFIG_LIST_MAX,
		      .doc = "Values that ${input:ID} in mcpServers and agents asks the user for."),
	FIELD_DICT(struct config_file, workspaces, config_workspace_table, .max = CONFIG_LIST_MAX,
		   .item_min = 1, .item_max = CONFIG_NAME_MAX,
		   .doc = "Folders in which agents of conversations work, by name."),
	FIELD_OBJECT(struct config_file, conversations, config_conversations_table,
		     .doc = "Settings of conversations with agents."),
	FIELD_DICT(
		struct config_file, profiles, config_profile_table, .max = CONFIG_LIST_MAX,
		.item_min = 1, .item_max = CONFIG_NAME_MAX,
		.doc = "Profiles by name: limits, MCP servers, networks and tools that clients can "
		       "ask for."),
	FIELD_DICT(struct config_file, agents, config_agent_table, .max = CONFIG_LIST_MAX,
		   .item_min = 1, .item_max = CONFIG_SERVER_NAME_MAX,
		   .doc = "Agents that conversations can use, by name: programs that speak ACP."),
	FIELD_OBJECT(struct config_file, compat, config_compat_table,
		     .doc = "Compatibility with clients made for other services."),
};

const struct field_table config_table = FIELD_TABLE(
	struct config_file, file_fields, .doc = "Holt's configuration, the operator's file.");

void config_schema(struct json_writer *w)
{
	field_schema(&config_table, w);
}

/* ---- reading ------------------------------------------------------------------------------- */

static unsigned config_line_of(const struct config *c, const struct json_pointer *at)
{
	struct str text = buf_str(&c->text);

	return json_line(text, json_where(c->doc, text, at->text));
}

unsigned config_line(const struct config_reader *r, const struct json_pointer *at)
{
	return config_line_of(r->config, at);
}

struct config_lines config_lines(const struct config_reader *r, const struct json_pointer *of)
{
	struct str text = buf_str(&r->config->text);
	size_t at = json_where(r->config->doc, text, of->text);

	return (struct config_lines){ json_raw((struct str){ text.p + at, text.n - at }),
				      text.p + at, json_line(text, at) };
}

unsigned config_next_line(struct config_lines *l)
{
	struct str value;

	if (!json_raw_next(&l->raw, &value))
		return l->line;
	l->line += json_line((struct str){ l->at, (size_t)(value.p - l->at) }, SIZE_MAX) - 1;
	l->at = value.p;
	return l->line;
}

int config_refuse(struct config_reader *r, const struct json_pointer *at, const char *fmt, ...)
{
	va_list ap;

	*r->where = *at;
	r->e->code = ERR_INVALID;
	va_start(ap, fmt);
	vsnprintf(r->e->msg, sizeof(r->e->msg), fmt, ap);
	va_end(ap);
	return -1;
}

static int config_check(struct config_reader *r)
{
	const struct json_pointer root = JSON_POINTER_INIT,
				  principals = config_at(root, STR_LIT("principals"));
	struct config_file *f = &r->config->file;
	struct config_lines lines;
	struct json_pointer at;

	if (config_check_policy(r, config_at(root, STR_LIT("policy")), &f->policy) < 0 ||
	    config_check_secrets(r, config_at(root, STR_LIT("secrets")), &f->secrets) < 0 ||
	    config_check_network(r, config_at(root, STR_LIT("network")), &f->network) < 0 ||
	    config_check_tls(r, config_at(root, STR_LIT("tls")), &f->tls) < 0 ||
	    config_check_inputs(r, config_at(root, STR_LIT("inputs")), &f->inputs) < 0 ||
	    config_check_conversations(r, root, f) < 0 ||
	    config_check_servers(r, config_at(root, STR_LIT("mcpServers")), f) < 0 ||
	    config_check_profiles(r, config_at(root, STR_LIT("profiles")), f) < 0 ||
	    config_check_agents(r, config_at(root, STR_LIT("agents")), f) < 0)
		return -1;
	at = config_at(root, STR_LIT("images"));
	f->images_line = config_line(r, &at);
	lines = config_lines(r, &principals);
	for (size_t i = 0; i < f->principals.n; i++) {
		struct config_principal *p = &f->principals.p[i];

		at = config_at(principals, p->name);
		p->line = config_next_line(&lines);
		if (config_check_policy(r, config_at(at, STR_LIT("policy")), &p->policy) < 0)
			return -1;
	}
	return 0;
}

/* Puts the place before the message. */
static int config_wrap(const struct config *c, unsigned line, const char *pointer, struct err *e)
{
	char place[CONFIG_PLACE_MAX];

	return err_wrap(e, "%s%s%s", config_place(c, line, place), *pointer ? ": " : "", pointer);
}

int config_wrap_at(const struct config *c, const struct json_pointer *at, struct err *e)
{
	return config_wrap(c, config_line_of(c, at), at->text, e);
}

/* The parser tells the byte, and people want the line. */
static int config_wrap_parse(const struct config *c, struct err *e)
{
	static const char at[] = "at byte ";
	const char *byte = strstr(e->msg, at);
	size_t n = byte ? strtoull(byte + strlen(at), NULL, 10) : 0;

	return config_wrap(c, json_line(buf_str(&c->text), n), "", e);
}

static int config_read(struct config *c, struct err *e)
{
	const struct json_options limits = { .bytes = CONFIG_BYTES_MAX,
					     .values = VALUES_MAX,
					     .depth = NESTED_MAX };
	struct json_pointer where = JSON_POINTER_INIT;
	struct config_reader r = { .config = c, .where = &where, .e = e };
	size_t at = 0;

	if (config_strip(c->text.p, c->text.n, &at, e) < 0)
		return config_wrap(c, json_line(buf_str(&c->text), at), "", e);
	c->doc = json_parse(buf_str(&c->text), &limits, e);
	if (!c->doc)
		return config_wrap_parse(c, e);
	if (json_type(json_root(c->doc)) != JSON_OBJECT) {
		err_set(e, ERR_INVALID, "it takes an object, not %s",
			json_type_name(json_type(json_root(c->doc))));
		return config_wrap(c, 1, "", e);
	}
	if (field_decode_where(&config_table, json_root(c->doc), &c->arena, &c->file, &where, e) <
		    0 ||
	    config_check(&r) < 0)
		return config_wrap_at(c, &where, e);
	return 0;
}

/* path: NULL for none. */
static struct config *config_new(const char *path, const char *name, struct err *e)
{
	AUTO(config_unref) struct config *c = calloc(1, sizeof(*c));
	char *base;

	if (!c) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	c->refs = 1;
	c->text = BUF_INIT(CONFIG_BYTES_MAX);
	arena_init(&c->arena, ARENA_MAX);
	field_defaults(&config_table, &c->file);
	if (path) {
		c->path = strdup(path);
		base = c->path ? strrchr(c->path, '/') : NULL;
		name = base ? base + 1 : c->path;
	}
	c->name = arena_dup(&c->arena, str_of(name), e);
	return c->name && (!path || c->path) ? take_ptr(c) : NULL;
}

struct config *config_parse(struct str text, const char *name, struct err *e)
{
	AUTO(config_unref) struct config *c = config_new(NULL, name, e);

	if (!c || buf_add(&c->text, text.p, text.n, e) < 0 || config_read(c, e) < 0)
		return NULL;
	c->exists = true;
	return take_ptr(c);
}

/* Whoever may write it decides what every client may do. */
static int config_check_owner(int fd, const char *name, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "%s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%s is not a regular file", name);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(e, ERR_DENIED, "%s belongs to another user", name);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, ERR_DENIED, "others may write %s: chmod go-w it", name);
	return 0;
}

int config_load(int fd, const char *name, struct buf *to, struct err *e)
{
	ssize_t n = 1;

	if (config_check_owner(fd, name, e) < 0)
		return -1;
	while (n > 0) {
		char *at = buf_reserve(to, 4096, e);

		if (!at)
			return err_wrap(e, "%s", name);
		n = read(fd, at, 4096);
		if (n > 0)
			buf_advance(to, (size_t)n);
	}
	return n < 0 ? err_sys(e, errno, "read %s", name) : 0;
}

struct config *config_open(const char *path, bool must, struct err *e)
{
	AUTO(config_unref) struct config *c = config_new(path, NULL, e);
	autoclose int fd = c ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;

	if (!c)
		return NULL;
	if (fd < 0 && errno == ENOENT && !must)
		return take_ptr(c);
	if (fd < 0) {
		const int errnum = errno;

		err_sys(e, errnum, "open %s", c->name);
		/* the remedy of a path that is missing is for one in a sandbox */
		if (errnum == ENOENT || errnum == ENOTDIR)
			e->code = ERR_INVALID;
		return NULL;
	}
	c->exists = true;
	if (config_load(fd, c->name, &c->text, e) < 0 || config_read(c, e) < 0)
		return NULL;
	return take_ptr(c);
}

struct config *config_ref(struct config *c)
{
	c->refs++;
	return c;
}

void config_unref(struct config *c)
{
	if (!c || --c->refs > 0)
		return;
	json_free(c->doc);
	buf_fini(&c->text);
	arena_fini(&c->arena);
	free(c->path);
	free(c);
}

const struct config_file *config_file(const struct config *c)
{
	return &c->file;
}

const char *config_path(const struct config *c)
{
	return c->path;
}

bool config_exists(const struct config *c)
{
	return c->exists;
}

const char *config_place(const struct config *c, unsigned line, char ret[CONFIG_PLACE_MAX])
{
	snprintf(ret, CONFIG_PLACE_MAX, "%.80s:%u", c->name, line);
	return ret;
}
