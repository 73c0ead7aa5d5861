/* `holt images`: lists the images; its subcommands change them. */
#include <stdio.h>
#include <time.h>

#include "cli/images/store.h"
#include "base/log.h"
#include "cli/common/table.h"

enum { JSON_MAX = 64 << 20 };

static void images_row(struct table *t, struct str name, const struct image *i)
{
	time_t created = (time_t)(i->record.created_ms / 1000);
	char size[16], when[64];

	image_cli_size(i->record.bytes, size);
	strftime(when, sizeof(when), "%F %H:%M", localtime(&created));
	table_str(t, name);
	table_cell(t, "%.12s", i->record.digest.p);
	table_cell(t, "%s", size);
	table_cell(t, "%s", when);
}

/* Names whose images are not in the store now. */
static void images_tell_missing(const struct image_names *names, char (*all)[HASH_HEX + 1],
				size_t n)
{
	for (size_t k = 0; k < names->n; k++) {
		const struct image_name *name = &names->p[k];
		size_t i = 0;

		while (i < n && !str_is(name->digest, all[i]))
			i++;
		if (i == n)
			log_warn("%.*s: images/image/%.*s is not in the data folder",
				 STR_ARG(name->name), STR_ARG(name->digest));
	}
}

/* A row for each name of the image. */
static void images_rows(struct table *t, const struct image *i, const struct image_names *names)
{
	bool named = false;

	for (size_t k = 0; k < names->n; k++) {
		if (!str_eq(names->p[k].digest, i->record.digest))
			continue;
		images_row(t, names->p[k].name, i);
		named = true;
	}
	if (!named)
		images_row(t, STR_NONE, i);
}

static int list_run(const struct verb_input *in, struct err *e)
{
	const bool json = ((const struct verb_output *)in->options)->output == OUTPUT_JSON;
	AUTO(images_close) struct images *s = image_cli_open(e);
	autofree char(*all)[HASH_HEX + 1] = NULL;
	autodoc struct image_doc doc = { NULL, NULL };
	autobuf struct buf text = BUF_INIT(JSON_MAX);
	AUTO(table_free) struct table *t = TABLE(e, "NAME", "DIGEST", ">SIZE", "IMPORTED");
	struct json_writer w = json_writer(&text);
	struct image_names names;
	ssize_t n;

	if (!s || !t || images_names(s, &doc, &names, e) < 0)
		return -1;
	n = images_list(s, &all, e);
	if (n < 0)
		return -1;
	images_tell_missing(&names, all, (size_t)n);
	json_write_array(&w);
	for (ssize_t k = 0; k < n; k++) {
		autoimage struct image i = { .record = { .bytes = 0 } };

		if (images_find(s, str_of(all[k]), &i, e) < 0) {
			if (e->code != ERR_TEMPLATE_NOT_FOUND)
				return -1;
			continue; /* removed meanwhile */
		}
		if (!json)
			images_rows(t, &i, &names);
		else if (image_cli_json(&i, &names, &w, e) < 0)
			return -1;
	}
	json_write_array_end(&w);
	if (json)
		return image_cli_print(&w, e);
	table_print(t);
	return 0;
}

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List the images that sandboxes can be made from.",         \
	.page = "holt-images", .options = &verb_output, .size = sizeof(struct verb_output),        \
	.run = list_run

extern const struct verb images_import_verb, images_inspect_verb, images_rm_verb, images_prune_verb,
	images_pull_verb;
static const struct verb images_ls_verb = { .name = "images ls", LIST };

/* A file and a row each. */
static const struct verb *const words[] = {
	&images_ls_verb,
	&images_import_verb,
	&images_pull_verb,
	&images_inspect_verb,
	&images_rm_verb,
	&images_prune_verb,
	NULL,
};

const struct verb images_verb = { .name = "images", LIST, .words = words };
