#include "modules/package.h"

#include <stdlib.h>

enum { RECORD_MAX = 512 << 10, LIST_MAX = 4096, WANTED_MAX = 8 << 10 };

#define TEXT(m, ...) FIELD(struct package_record, m, .max = 1024, __VA_ARGS__)
#define TEXTS(m, ...)                                                                              \
	FIELD(struct package_record, m, .max = LIST_MAX, .item_max = 1024, __VA_ARGS__)

static const struct field record_fields[] = {
	TEXT(wanted, .flags = FIELD_REQUIRED, .doc = "The entry that it was fetched for."),
	TEXT(kind, .flags = FIELD_REQUIRED, .doc = "npm or PyPI."),
	TEXT(name, .flags = FIELD_REQUIRED, .doc = "Its name."),
	TEXT(version, .flags = FIELD_REQUIRED, .doc = "Its version."),
	TEXT(license, .doc = "Its licence, as its publisher says."),
	TEXT(author, .doc = "Its author, as its publisher says."),
	TEXT(repository, .doc = "Its repository, as its publisher says."),
	TEXTS(maintainers, .doc = "Its maintainers, as the registry says."),
	FIELD(struct package_record, bytes, .doc = "Of all files."),
	FIELD(struct package_record, files, .doc = "Files and directories."),
	TEXTS(dependencies, .doc = "What it was fetched with."),
	TEXTS(scripts, .doc = "Install scripts."),
	FIELD(struct package_record, lock, .flags = FIELD_REQUIRED, .min = HASH_HEX,
	      .max = HASH_HEX, .doc = "Digest of all that was fetched."),
	TEXTS(program, .flags = FIELD_REQUIRED, .min = 1, .doc = "What is run."),
};
static const struct field_table record_table = FIELD_TABLE(struct package_record, record_fields);

static int package_read(struct package *p, const char *store, struct err *e)
{
	autobuf struct buf text = BUF_INIT(RECORD_MAX);

	if (images_file(store, p->image, "opt/package/package.holt.json", RECORD_MAX, &text, e) < 0)
		return e->code == ERR_PATH_NOT_FOUND
			     ? err_set(e, ERR_DATA_MISSING,
				       "images/image/%.12s…, its package, is not in the data "
				       "folder: fetch it again (holt mcp update)",
				       p->image)
			     : -1;
	p->doc.json = json_parse(buf_str(&text), NULL, e);
	p->doc.arena = p->doc.json ? arena_new(2 * RECORD_MAX) : NULL;
	if (p->doc.json && !p->doc.arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	return p->doc.json ? field_decode(&record_table, json_root(p->doc.json), p->doc.arena,
					  &p->record, e)
			   : -1;
}

/* The one that was fetched for this server: it must not be taken for that of another, whatever an
 * image says of itself. */
static int package_check(const struct package *p, const struct config_server *s, struct err *e)
{
	autobuf struct buf wanted = BUF_INIT(WANTED_MAX);

	if (package_wanted(s, &wanted, e) < 0)
		return -1;
	return str_eq(p->record.wanted, buf_str(&wanted))
		     ? 0
		     : err_set(e, ERR_DATA_MISSING, "its package was fetched for another entry");
}

/* ---- docker run ------------------------------------------------------------------------------ */

static int package_program(struct package *p, const struct config_package *entry, struct err *e)
{
	struct str *program;

	if (!entry->program.p) {
		p->record.program = p->of.record.entrypoint;
		p->record.arguments = p->of.record.cmd;
		return 0;
	}
	program = arena_array(p->doc.arena, 1, sizeof(*program), e);
	if (!program)
		return -1;
	*program = (struct str){ arena_dup(p->doc.arena, entry->program, e), entry->program.n };
	p->record.program = (struct field_strs){ program, 1 };
	return program->p ? 0 : -1;
}

static int package_read_image(struct package *p, const char *store,
			      const struct config_package *entry, struct err *e)
{
	AUTO(images_close) struct images *s = images_look(store, e);
	struct arena *a;
	char *name;

	if (!s || images_find(s, str_of(p->image), &p->of, e) < 0)
		return e->code == ERR_TEMPLATE_NOT_FOUND
			     ? err_set(e, ERR_DATA_MISSING,
				       "its image %.12s… is not in the data folder: fetch it again "
				       "(holt mcp update)",
				       p->image)
			     : -1;
	p->doc.arena = a = arena_new(RECORD_MAX);
	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	name = arena_dup(a, entry->name, e);
	p->record = (struct package_record){
		.kind = str_of(config_package_kind_names[CONFIG_IMAGE]),
		.name = { name, entry->name.n },
		.version = str_of(arena_printf(a, e, "sha256:%s", p->image)),
		.bytes = p->of.record.bytes,
		.files = p->of.record.entries,
		.lock = str_of(p->image),
	};
	return name && p->record.version.p ? package_program(p, entry, e) : -1;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int package_read_any(struct package *p, const char *store, const struct config_server *s,
			    struct err *e)
{
	struct config_package entry;

	if (config_package_read(s, &entry, e) <= 0)
		return -1;
	if (entry.kind == CONFIG_IMAGE)
		return package_read_image(p, store, &entry, e);
	return package_read(p, store, e) < 0 ? -1 : package_check(p, s, e);
}

struct package *package_open(const char *store, struct str image, const struct config_server *s,
			     struct err *e)
{
	struct package *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	p->refs = 1;
	snprintf(p->image, sizeof(p->image), "%.*s", STR_ARG(image));
	if (hash_is_hex(image) && package_read_any(p, store, s, e) == 0)
		return p;
	if (!e->code)
		err_set(e, ERR_DATA_MISSING, "its package is not known any more");
	package_unref(p);
	return NULL;
}

struct package *package_ref(struct package *p)
{
	if (p)
		p->refs++;
	return p;
}

void package_unref(struct package *p)
{
	if (!p || --p->refs > 0)
		return;
	image_doc_fini(&p->doc);
	image_fini(&p->of);
	free(p);
}

int package_wanted(const struct config_server *s, struct buf *to, struct err *e)
{
	struct config_package entry;
	int is = config_package_read(s, &entry, e);

	if (is <= 0)
		return is;
	return buf_addf(to, e, "%s %.*s version:%.*s program:%.*s template:%.*s%s%s",
			config_package_kind_names[entry.kind], STR_ARG(entry.name),
			STR_ARG(entry.version), STR_ARG(entry.program),
			STR_ARG(s->sandbox.template),
			s->sandbox.install_scripts ? " with install scripts" : "",
			entry.pulls ? " pulled" : "") < 0
		     ? -1
		     : 1;
}
