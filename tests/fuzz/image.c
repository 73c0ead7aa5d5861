/*
 * The documents around images: the first byte picks the reader, the rest is the document. What is
 * refused is an error of the kinds that are promised; what is accepted is within its bounds.
 *
 */
#include "fuzz.h"
#include "hub/image/doc.h"

static void check_refusal(int rc, const struct err *e)
{
	MUST(rc == 0 || e->code == ERR_IMAGE || e->code == ERR_TOO_LARGE || e->code == ERR_LIMIT);
}

static void check_digest(struct str text)
{
	struct err e = ERR_INIT;
	struct str hex = STR_NONE;
	int rc = image_digest(text, &hex, &e);

	check_refusal(rc, &e);
	if (rc < 0)
		return;
	MUST(hex.n == 64 && text.n == 71);
	for (size_t i = 0; i < hex.n; i++) /* it becomes a part of a path */
		MUST(strchr("0123456789abcdef", hex.p[i]));
}

static void check_desc(const struct image_desc *d)
{
	struct err e = ERR_INIT;

	check_digest(d->digest);
	check_refusal(image_check_layer(d, &e), &e);
	MUST(!(image_is_index(d->mediaType) && image_is_manifest(d->mediaType)));
	(void)image_fits(d);
}

static int read_index(struct image_doc *doc, struct str text, struct err *e)
{
	struct image_index index;

	if (image_read_index(doc, text, &index, e) < 0)
		return -1;
	MUST(index.manifests.n <= IMAGE_MANIFESTS_MAX);
	for (size_t i = 0; i < index.manifests.n; i++)
		check_desc(&index.manifests.p[i]);
	return 0;
}

static int read_manifest(struct image_doc *doc, struct str text, struct err *e)
{
	struct image_manifest m;

	if (image_read_manifest(doc, text, &m, e) < 0)
		return -1;
	MUST(m.layers.n <= IMAGE_LAYERS_MAX);
	check_desc(&m.config);
	for (size_t i = 0; i < m.layers.n; i++)
		check_desc(&m.layers.p[i]);
	return 0;
}

static int read_config(struct image_doc *doc, struct str text, struct err *e)
{
	struct image_config c;

	if (image_read_config(doc, text, &c, e) < 0)
		return -1;
	MUST(c.rootfs.diff_ids.n <= IMAGE_LAYERS_MAX);
	for (size_t i = 0; i < c.rootfs.diff_ids.n; i++)
		check_digest(c.rootfs.diff_ids.p[i]);
	/* they become C strings */
	for (size_t i = 0; i < c.config.Env.n; i++)
		MUST(!c.config.Env.p[i].n || !memchr(c.config.Env.p[i].p, 0, c.config.Env.p[i].n));
	return 0;
}

static int read_docker(struct image_doc *doc, struct str text, struct err *e)
{
	struct docker_images all;

	if (image_read_docker(doc, text, &all, e) < 0)
		return -1;
	MUST(all.n > 0 && all.n <= IMAGE_MANIFESTS_MAX);
	for (size_t i = 0; i < all.n; i++) {
		MUST(all.p[i].Config.n > 0 && all.p[i].Layers.n <= IMAGE_LAYERS_MAX);
		MUST(!memchr(all.p[i].Config.p, 0, all.p[i].Config.n));
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static int (*const readers[])(struct image_doc *, struct str,
				      struct err *) = { read_index, read_manifest, read_config,
							read_docker };
	autodoc struct image_doc doc = { NULL, NULL };
	struct err e = ERR_INIT;

	if (n == 0)
		return 0;
	check_refusal(readers[data[0] % 4](&doc, (struct str){ (const char *)data + 1, n - 1 }, &e),
		      &e);
	return 0;
}
