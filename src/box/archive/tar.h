#pragma once
/*
 * Tar archives, without I/O, libraries or memory of their own: bytes in, bytes out, for whoever has
 * them, the first process of a sandbox, the warden and the hub alike. What is written is ustar
 * (POSIX.1-2008) with PAX records where ustar can't say it; what is read is that, GNU's long names
 * and sizes, and v7.
 *
 * What is read is hostile. Lengths are bounded, checksums are checked, and what could be read in
 * two ways is refused. But a path is what the archive says: whoever makes a file of it uses
 * tar_path_clean(), and opens it below one directory without following links.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	TAR_BLOCK = 512,
	TAR_PATH_MAX = 4096, /* of paths and links, with the NUL */
	TAR_META_MAX = 1024 * 1024, /* extended headers before one entry */
	TAR_HEAD_MAX = 512 + 9216 + 512, /* what tar_head() writes */
	TAR_COMMENT_MAX = 320, /* of a comment, with the NUL */
	TAR_END_BYTES = 1024, /* zeros, at the end of an archive */
};

enum tar_type { TAR_FILE, TAR_DIRECTORY, TAR_SYMLINK, TAR_HARDLINK };

struct tar_entry {
	enum tar_type type;
	uint32_t mode; /* 07777 */
	uint64_t size; /* of a file's content; 0 else */
	int64_t mtime; /* seconds since the epoch */
	uint32_t mtime_ns;
	const char *path; /* never empty; a directory's may end in '/' */
	/* the target of a symbolic link, or the path of the entry that a hard link names; else
	 * "" */
	const char *link;
	uint32_t uid, gid; /* below 2^21; what is read and is not is 65534, nobody */
};

/* ---- writing ------------------------------------------------------------------------------- */

/* Writes the header of an entry, at most TAR_HEAD_MAX bytes. 0: its path or link is empty or
 * longer than TAR_PATH_MAX - 1, counting the '/' of a directory. The content must follow, then
 * tar_padding() zeros; after the last entry TAR_END_BYTES zeros. Owners have numbers only. */
size_t tar_head(const struct tar_entry *entry, char out[TAR_HEAD_MAX]);

/* Writes a comment about the whole archive, shorter than TAR_COMMENT_MAX: a global extended header,
 * which others ignore. */
size_t tar_comment(const char *text, char out[TAR_HEAD_MAX]);

static inline size_t tar_padding(uint64_t size)
{
	return (size_t)(-size % TAR_BLOCK);
}

static inline bool tar_is_zero(const char *p, size_t n)
{
	return n == 0 || (p[0] == '\0' && memcmp(p, p + 1, n - 1) == 0);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* The defect of an archive. */
enum tar_why {
	TAR_FINE,
	TAR_WHY_CUT, /* it ends in the middle */
	TAR_WHY_CHECKSUM,
	TAR_WHY_NUMBER,
	TAR_WHY_NAME, /* empty, or with a NUL in it */
	TAR_WHY_LONG, /* a path or link that is longer than can be */
	TAR_WHY_RECORD, /* an extended header that can't be read */
	TAR_WHY_META, /* extended headers of more than TAR_META_MAX */
	TAR_WHY_GLOBAL, /* a global header with data of a single entry */
	TAR_WHY_SPARSE,
	TAR_WHY_CONTENT, /* bytes in what is no file */
	TAR_WHY_AFTER, /* bytes behind its end */
	TAR_WHYS
};

/* A few words, "its header's checksum is wrong"; static. */
const char *tar_why_text(enum tar_why why);

enum tar_event {
	TAR_MORE, /* all bytes are taken */
	TAR_ENTRY, /* reader->entry is the next one, until the next call after its content */
	/* content_n bytes of the last entry's content, borrowed from the input */
	TAR_CONTENT,
	TAR_ENTRY_END, /* of a file: all of its content was there */
	/* an entry of another kind, such as a device: reader->entry has its path, its content is
	 * skipped */
	TAR_PASSED,
	TAR_END, /* of the archive; what follows may only be zeros */
	TAR_BAD, /* reader->why; no further call gives anything else */
};

enum { TAR_KEY_MAX = 24, TAR_NUMBER_MAX = 40 };

struct tar_reader {
	struct tar_entry entry;
	const char *content;
	size_t content_n;
	enum tar_why why;
	char comment[TAR_COMMENT_MAX]; /* the last about the whole archive; cut */
	/* the rest is its own */
	unsigned state;
	uint64_t left; /* of content or of an extended header; then pad zeros */
	size_t pad;
	size_t meta; /* bytes of extended headers before this entry */
	size_t at; /* in block, or in path or link */
	bool zero; /* one block of zeros was read */
	bool ended;
	unsigned have; /* what extended headers have said of this entry */
	struct {
		unsigned phase, key_id, digits;
		bool global;
		size_t left; /* of a record */
		size_t n; /* of key, number, path or link */
		char key[TAR_KEY_MAX], number[TAR_NUMBER_MAX];
	} pax;
	uint64_t pax_size;
	int64_t pax_mtime;
	uint32_t pax_mtime_ns;
	char block[TAR_BLOCK];
	char path[TAR_PATH_MAX], link[TAR_PATH_MAX];
};

void tar_reader_init(struct tar_reader *r);

/* Reads from *p, which has *n bytes, and advances both. Call it until it returns TAR_MORE. */
enum tar_event tar_read(struct tar_reader *r, const char **p, size_t *n);

/* The input has ended: TAR_FINE if it was a whole archive. */
enum tar_why tar_reader_end(struct tar_reader *r);

/* Makes a non-empty path relative, without empty parts or "."; the top itself is ".". False if
 * it leads upwards by ".."; the path is then undefined. */
bool tar_path_clean(char *path);
