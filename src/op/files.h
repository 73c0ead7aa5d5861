#pragma once
/* What is in a sandbox, by path: files.list, files.stat, files.mkdir, files.remove, files.move
 * (files.c), files.read and files.write (files_data.c), files.download and files.watch
 * (files_tree.c). Secrets of what is written back: files_marks.c, files_return.c. */
#include "box/host/box.h"
#include "base/when.h"
#include "op/ops.h"

enum { FILES_PATH_MAX = 4095 };

/* It is done; path is where it is now. */
struct files_done {
	struct str sandbox, path, status;
};

struct file_info {
	/* path: as it was sent; name: its last part */
	struct str path, name;
	bool is_dir;
	enum file_type type;
	uint64_t size;
	uint32_t mode;
	int64_t modified_at;
};
extern const char *const file_type_names[4];

struct files_list_request {
	struct str sandbox, path;
	uint32_t limit;
};

struct file_listed {
	struct str name;
	bool is_dir;
	enum file_type type;
	uint64_t size;
	uint32_t mode;
	int64_t modified_at;
	/* The same for people: octal, and RFC 3339. */
	struct str mode_text, modified_text;
};

struct files_listing {
	struct {
		const struct file_listed *p;
		size_t n;
	} entries;
	bool truncated;
};

enum file_encoding { FILE_UTF8, FILE_BASE64 };
extern const char *const file_encoding_names[2];

enum {
	FILES_READ_MAX = 4 << 20, /* bytes of one answer */
	FILES_WRITE_MAX = 32 << 20,
	FILES_CHUNK = 256 << 10, /* of a stream */
};

/* Bytes of a file: in UTF-8, or as they are, which is written as base64. */
struct file_content {
	struct str content;
	enum file_encoding encoding;
	uint64_t size, offset, bytes;
	bool eof;
	bool has_next;
	uint64_t next_offset;
	struct str mode; /* octal */
};
/* Where the door takes a stream, files.read tells the file to its end; files.download tells an
 * archive, with an empty piece behind its last. */
struct file_chunk {
	struct str data;
	bool eof;
};

extern const struct field_table file_chunk_table;
/* Sends the next bytes of an archive as an event; a secret may begin in one piece and end in
 * another. eof: they are the last, and may be none. */
void files_send_archive(struct call *c, struct str bytes, bool eof);

struct files_read_request {
	struct str sandbox, path;
	uint64_t offset;
	uint32_t limit; /* 0: to its end */
	enum file_encoding encoding;
	bool raw;
};

/* Normalized, content is the bytes, and encoding and mode_octal say nothing more. */
struct files_write_request {
	struct str sandbox, path, content;
	enum file_encoding encoding;
	uint32_t mode;
	struct str mode_octal;
	bool make_parents;
};

struct file_written {
	struct str sandbox, path, status; /* "ok" */
	uint64_t bytes;
};

/* The request of files.watch and files.download. Normalized, path is not empty. */
struct files_tree_request {
	struct str sandbox, path;
	bool recursive, raw, named, literal;
};
/* The row of a bool of a request that brings an archive. */
#define FILES_LITERAL_ROW(S)                                                                       \
	FIELD(S, literal,                                                                          \
	      .doc = "Marks of redaction in it are text, and no secret takes their place. Only "   \
		     "for the operator at this machine; ignored for others.")

/* What happens below a directory. */
struct file_event {
	enum change_kind kind;
	struct str path; /* from the directory on; STR_NONE: it is about the directory */
	struct str path_bytes; /* the same, where it is not UTF-8 */
	bool is_dir, is_move;
	uint32_t cookie;
};
extern const char *const file_event_names[CHANGE_KINDS];

/* The same of files.upload, which the doors do. */
extern const struct field_table files_upload_table;
int files_tree_normalize(void *request, struct arena *a, struct err *e) MUST_USE;

/* The sandbox of a request about this path in it; NULL where the call has failed. */
struct sandbox *files_enter(struct call *c, struct str sandbox, struct str path);

enum { FILES_LITERAL_BYTES = 64 << 20 }; /* for *left below, of one call */
/* Whether bytes have this literally, of which *left may still be searched: so many searches of one
 * call take linear time. */
bool files_find_literal(struct str bytes, struct str said, size_t *left);

/* Whether a text may have been read with marks in the place of secrets. */
bool files_has_marks(struct str text);
struct redactor;
struct files_marked {
	struct str old, text; /* the file as it is, and what is to be written */
	bool archive; /* the text is from an archive, in which marks have the length of secrets */
	bool part; /* of a file: others of its parts may have secrets */
	bool by_agent; /* writes it */
};
/* Appends the text with the secrets of the old content in the place of marks that it is shown with.
 * ERR_INVALID: a mark stands for another secret, or it is not clear for which. */
int files_put_back(struct redactor *r, const struct files_marked *t, struct buf *to,
		   struct err *e) MUST_USE;

/* An archive on its way to where its files may be already: as files_put_back(), file by file. */
struct files_return;
struct files_return_spec {
	struct call *call;
	struct budget *of; /* counts what is kept */
	bool literal; /* as in the request */
	/* Reads up to max bytes of the old content at offset; name: as tar_path_clean() makes it.
	 * on_done may come after files_return_free(). */
	void (*read)(void *owner, const char *name, uint64_t offset, size_t max,
		     file_read_cb on_done, void *arg);
	/* What goes on. On failure with *e so does the upload. */
	int (*put)(void *owner, struct str bytes, struct err *e);
	/* It no longer waits; with err it has failed. */
	void (*on_ready)(void *owner, const struct err *err);
	void *owner;
};
/* NULL with *e: no memory. */
struct files_return *files_return_new(const struct files_return_spec *spec, struct err *e) MUST_USE;
/* No callback follows. NULL-safe. */
void files_return_free(struct files_return *r);
/* Takes the next bytes of the archive. While it waits for the old content of a file, the client is
 * to be held: it keeps 8 MiB. */
int files_return_take(struct files_return *r, struct str bytes, struct err *e) MUST_USE;
bool files_return_waits(const struct files_return *r);
