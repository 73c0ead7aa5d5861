#include "cli/images/store.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "store/store.h"

enum { TIDY_TRIES = 50, TIDY_WAIT_US = 20000, JSON_MAX = 16 << 20 };

static int image_cli_kept(const char *digest, struct err *e)
{
	char path[PATH_MAX];

	return home_where("registry.db", path, e) < 0 ? -1 : store_keeps_image(path, digest, e);
}

struct images *image_cli_open(struct err *e)
{
	char path[PATH_MAX];
	struct images *s = home_file("images", path, e) < 0 ? NULL : images_open(path, e);

	if (s)
		images_keep_by(s, image_cli_kept);
	return s;
}

int image_cli_find(void *unused, struct str name, box_template_use use, void *to, struct err *e)
{
	char path[PATH_MAX];

	return home_where("images", path, e) < 0 ? -1 : images_template(path, name, use, to, e);
}

int image_cli_look(struct str name, struct image *ret, struct err *e)
{
	char path[PATH_MAX];
	AUTO(images_close)
	struct images *s = home_where("images", path, e) < 0 ? NULL : images_look(path, e);

	return s ? images_find(s, name, ret, e) : -1;
}

void image_cli_tidy(void *unused)
{
	struct err e = ERR_INIT; /* what stays, the next import removes */
	AUTO(images_close) struct images *s = image_cli_open(&e);

	/* The unpacking process is killed with its parent, but may still write its last file. */
	for (int i = 0; s && i < TIDY_TRIES && images_tidy(s, &e) < 0; i++)
		usleep(TIDY_WAIT_US);
}

int image_cli_json(const struct image *i, const struct image_names *names, struct json_writer *w,
		   struct err *e)
{
	json_write_object(w);
	json_write_key(w, "names");
	json_write_array(w);
	for (size_t k = 0; k < names->n; k++) {
		if (str_eq(names->p[k].digest, i->record.digest))
			json_write_str(w, names->p[k].name);
	}
	json_write_array_end(w);
	json_write_key(w, "image");
	field_encode(&image_record_table, &i->record, w);
	json_write_object_end(w);
	return w->err.code ? (*e = w->err, -1) : 0;
}

int image_cli_print(struct json_writer *w, struct err *e)
{
	if (json_write_done(w, e) < 0)
		return -1;
	safe_json_puts(stdout, buf_str(w->buf));
	return 0;
}

void image_cli_size(uint64_t bytes, char ret[16])
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	double n = (double)bytes;
	size_t unit = 0;

	while (n >= 999.5 && unit + 1 < ARRAY_LEN(units)) {
		n /= 1000;
		unit++;
	}
	snprintf(ret, 16, unit && n < 9.95 ? "%.1f %s" : "%.0f %s", n, units[unit]);
}

static void show_text(const char *name, struct str value)
{
	if (!value.p)
		return;
	printf("%-12s", name);
	safe_puts(stdout, value);
}

static void show_texts(const char *name, const struct field_strs *values)
{
	for (size_t i = 0; i < values->n; i++)
		show_text(i ? "" : name, values->p[i]);
}

static void show_network(const struct network_hosts *hosts, struct arena *a)
{
	for (size_t i = 0; i < hosts->n; i++) {
		struct err e;
		const char *text = network_host_text(&hosts->p[i], a, &e);

		show_text(i ? "" : "network", text ? str_of(text) : hosts->p[i].host);
	}
}

static void image_show(const struct image *i, const struct image_names *names)
{
	const struct image_record *r = &i->record;
	time_t created = (time_t)(r->created_ms / 1000);
	const char *label = "names";
	char text[64];

	for (size_t k = 0; k < names->n; k++) {
		if (!str_eq(names->p[k].digest, r->digest))
			continue;
		show_text(label, names->p[k].name);
		label = "";
	}
	show_text("digest", r->digest);
	show_text("source", r->source);
	if (r->of_host)
		show_text("programs", STR_LIT("of the host"));
	strftime(text, sizeof(text), "%F %T", localtime(&created));
	show_text("imported", str_of(text));
	image_cli_size(r->bytes, text);
	printf("%-12s%s in %llu files and directories\n", "size", text,
	       (unsigned long long)r->entries);
	show_text("user", r->user);
	show_text("home", r->home);
	show_text("workdir", r->workdir);
	show_texts("env", &r->env);
	show_texts("entrypoint", &r->entrypoint);
	show_texts("cmd", &r->cmd);
	show_network(&r->network, i->doc.arena);
	show_texts("layers", &r->layers);
}

int image_cli_tell(struct images *s, const struct image *i, const char *name, bool json,
		   struct err *e)
{
	autobuf struct buf text = BUF_INIT(JSON_MAX);
	autodoc struct image_doc doc = { NULL, NULL };
	struct json_writer w = json_writer(&text);
	struct image_names names;

	if (!json && name) {
		printf("%s  %.12s\n", name, i->record.digest.p);
		return 0;
	}
	if (images_names(s, &doc, &names, e) < 0)
		return -1;
	if (json)
		return image_cli_json(i, &names, &w, e) < 0 ? -1 : image_cli_print(&w, e);
	image_show(i, &names);
	return 0;
}
