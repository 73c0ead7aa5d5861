/*
 * The libraries that `holt` loads when it first needs them (base/library.h), since most of what it
 * is started for needs none: together they bring 40 others, and take longer to load than a sandbox
 * to start.
 *
 * Each function here is a jump to the library's, under the same name, so that code which calls it
 * is compiled against the library's header and linked as ever. What is called and not listed here
 * is an undefined reference.
 */
#include "bin/libraries.h"

#include <stdlib.h>

#include "base/library.h"
#include "base/mem.h"
#include "bin/sonames.h" /* what this build would have been linked with */

/* clang-format off */
#define CURL(X) \
	X(curl_easy_cleanup) X(curl_easy_getinfo) X(curl_easy_header) X(curl_easy_init) \
	X(curl_easy_setopt) X(curl_easy_strerror) X(curl_free) X(curl_global_init) \
	X(curl_multi_add_handle) X(curl_multi_assign) X(curl_multi_cleanup) \
	X(curl_multi_info_read) X(curl_multi_init) X(curl_multi_remove_handle) \
	X(curl_multi_setopt) X(curl_multi_socket_action) X(curl_slist_append) \
	X(curl_slist_free_all) X(curl_url) X(curl_url_cleanup) X(curl_url_get) \
	X(curl_url_set)

#define GNUTLS(X) \
	X(gnutls_bye) X(gnutls_certificate_allocate_credentials) \
	X(gnutls_certificate_free_credentials) \
	X(gnutls_certificate_server_set_request) X(gnutls_certificate_set_x509_key_mem) \
	X(gnutls_certificate_set_x509_trust_mem) X(gnutls_credentials_set) \
	X(gnutls_decode_rs_value) X(gnutls_hash) X(gnutls_hash_deinit) X(gnutls_hash_fast) \
	X(gnutls_hash_init) X(gnutls_hash_output) X(gnutls_privkey_deinit) \
	X(gnutls_privkey_export_x509) X(gnutls_privkey_generate) \
	X(gnutls_privkey_get_pk_algorithm) X(gnutls_privkey_import_x509_raw) \
	X(gnutls_privkey_init) X(gnutls_privkey_sign_data2) X(gnutls_pubkey_deinit) \
	X(gnutls_pubkey_export_ecc_raw2) X(gnutls_pubkey_export_rsa_raw2) \
	X(gnutls_pubkey_import_privkey) X(gnutls_pubkey_init) X(gnutls_record_check_pending) \
	X(gnutls_record_recv) X(gnutls_record_send) X(gnutls_rnd) \
	X(gnutls_session_set_verify_cert2) X(gnutls_strerror) X(gnutls_transport_set_ptr) \
	X(gnutls_transport_set_ptr2) X(gnutls_transport_set_pull_function) \
	X(gnutls_transport_set_push_function) X(gnutls_x509_crt_deinit) \
	X(gnutls_x509_crt_export2) X(gnutls_x509_crt_init) \
	X(gnutls_x509_crt_set_activation_time) X(gnutls_x509_crt_set_basic_constraints) \
	X(gnutls_x509_crt_set_dn_by_oid) X(gnutls_x509_crt_set_expiration_time) \
	X(gnutls_x509_crt_set_key) X(gnutls_x509_crt_set_key_usage) \
	X(gnutls_x509_crt_set_serial) X(gnutls_x509_crt_set_subject_key_id) \
	X(gnutls_x509_crt_set_version) X(gnutls_x509_crt_sign2) X(gnutls_x509_privkey_deinit) \
	X(gnutls_x509_privkey_export2_pkcs8) X(gnutls_x509_privkey_generate) \
	X(gnutls_x509_privkey_init)

#define MICROHTTPD(X) \
	X(MHD_add_response_header) X(MHD_create_response_for_upgrade) \
	X(MHD_create_response_from_buffer) X(MHD_create_response_from_callback) \
	X(MHD_destroy_response) X(MHD_get_connection_info) X(MHD_get_connection_values_n) \
	X(MHD_get_daemon_info) X(MHD_get_reason_phrase_for) X(MHD_get_timeout) \
	X(MHD_is_feature_supported) X(MHD_lookup_connection_value_n) X(MHD_queue_response) \
	X(MHD_quiesce_daemon) X(MHD_resume_connection) X(MHD_run) \
	X(MHD_set_connection_option) X(MHD_start_daemon) X(MHD_stop_daemon) \
	X(MHD_suspend_connection) X(MHD_upgrade_action)

#define ARCHIVE(X) \
	X(archive_entry_filetype) X(archive_entry_hardlink) X(archive_entry_mtime) \
	X(archive_entry_pathname) X(archive_entry_perm) X(archive_entry_size) \
	X(archive_entry_symlink) X(archive_errno) X(archive_error_string) \
	X(archive_filter_count) X(archive_read_data) X(archive_read_data_block) \
	X(archive_read_free) X(archive_read_new) X(archive_read_next_header) \
	X(archive_read_open) X(archive_read_support_filter_gzip) \
	X(archive_read_support_filter_zstd) X(archive_read_support_format_raw) \
	X(archive_read_support_format_tar) X(archive_set_error)

#define HS(X) \
	X(hs_alloc_scratch) X(hs_clone_scratch) X(hs_compile_multi) X(hs_deserialize_database) \
	X(hs_expression_info) X(hs_free_compile_error) X(hs_free_database) X(hs_free_scratch) \
	X(hs_scan)

#define EDIT(X) \
	X(el_end) X(el_get) X(el_gets) X(el_init) X(el_insertstr) X(el_line) X(el_set) X(history) \
	X(history_end) X(history_init)

#define PCRE2(X) \
	X(pcre2_code_free_8) X(pcre2_compile_8) X(pcre2_compile_context_create_8) \
	X(pcre2_compile_context_free_8) X(pcre2_get_error_message_8) \
	X(pcre2_get_ovector_pointer_8) X(pcre2_match_8) X(pcre2_match_context_create_8) \
	X(pcre2_match_context_free_8) X(pcre2_match_data_create_8) \
	X(pcre2_match_data_free_8) X(pcre2_pattern_info_8) X(pcre2_set_callout_8) \
	X(pcre2_set_heap_limit_8) X(pcre2_set_parens_nest_limit_8)

#define SQLITE3(X) \
	X(sqlite3_bind_blob64) X(sqlite3_bind_int64) X(sqlite3_bind_null) \
	X(sqlite3_bind_text) X(sqlite3_bind_text64) X(sqlite3_busy_timeout) \
	X(sqlite3_clear_bindings) X(sqlite3_close) X(sqlite3_column_blob) \
	X(sqlite3_column_bytes) X(sqlite3_column_int64) X(sqlite3_column_text) \
	X(sqlite3_column_type) X(sqlite3_db_config) X(sqlite3_db_filename) \
	X(sqlite3_errmsg) X(sqlite3_errstr) X(sqlite3_exec) \
	X(sqlite3_extended_result_codes) X(sqlite3_finalize) X(sqlite3_get_autocommit) \
	X(sqlite3_open_v2) X(sqlite3_prepare_v2) X(sqlite3_prepare_v3) X(sqlite3_reset) \
	X(sqlite3_step) X(sqlite3_stmt_readonly) X(sqlite3_system_errno) \
	X(sqlite3_wal_checkpoint_v2) X(sqlite3_wal_hook)

#define WSLAY(X) \
	X(wslay_event_config_set_max_recv_msg_length) X(wslay_event_context_client_init) \
	X(wslay_event_context_free) X(wslay_event_context_server_init) \
	X(wslay_event_get_close_received) X(wslay_event_get_queued_msg_count) \
	X(wslay_event_get_queued_msg_length) X(wslay_event_get_status_code_received) \
	X(wslay_event_queue_close) X(wslay_event_queue_msg) X(wslay_event_recv) \
	X(wslay_event_send) X(wslay_event_set_error) X(wslay_event_shutdown_read) \
	X(wslay_event_want_read) X(wslay_event_want_write)

#define Z(X) X(inflate) X(inflateEnd) X(inflateInit2_)
/* clang-format on */

#if defined(__x86_64__)
#define JUMP(address) "jmp *" address "(%rip)"
#elif defined(__aarch64__)
#define JUMP(address) "adrp x16, " address "\nldr x16, [x16, :lo12:" address "]\nbr x16"
#else
#error "no jump through an address is known for this processor"
#endif

/* Hidden, so that the library's own calls are not bound to ours; abort() until it is loaded. */
#define STUB(f)                                                                                    \
	__attribute__((used)) static void *address_##f = (void *)abort;                            \
	__asm__(".pushsection .text\n"                                                             \
		".globl " #f "\n.hidden " #f "\n.type " #f ", %function\n" #f                      \
		":\n" JUMP("address_" #f) "\n.size " #f ", . - " #f "\n.popsection");
#define ROW(f) { #f, &address_##f },

CURL(STUB)
GNUTLS(STUB)
MICROHTTPD(STUB)
ARCHIVE(STUB)
HS(STUB)
EDIT(STUB)
PCRE2(STUB)
SQLITE3(STUB)
WSLAY(STUB)
Z(STUB)

static const struct library_function curl[] = { CURL(ROW) };
static const struct library_function gnutls[] = { GNUTLS(ROW) };
static const struct library_function microhttpd[] = { MICROHTTPD(ROW) };
static const struct library_function archive[] = { ARCHIVE(ROW) };
static const struct library_function hs[] = { HS(ROW) };
static const struct library_function edit[] = { EDIT(ROW) };
static const struct library_function pcre2[] = { PCRE2(ROW) };
static const struct library_function sqlite3[] = { SQLITE3(ROW) };
static const struct library_function wslay[] = { WSLAY(ROW) };
static const struct library_function z[] = { Z(ROW) };

static struct library libraries[] = {
	{ "curl", SONAME_curl, curl, ARRAY_LEN(curl) },
	{ "gnutls", SONAME_gnutls, gnutls, ARRAY_LEN(gnutls) },
	{ "microhttpd", SONAME_microhttpd, microhttpd, ARRAY_LEN(microhttpd) },
	{ "archive", SONAME_archive, archive, ARRAY_LEN(archive) },
	{ "hs", SONAME_hs, hs, ARRAY_LEN(hs) },
	{ "edit", SONAME_edit, edit, ARRAY_LEN(edit) },
	{ "pcre2", SONAME_pcre2, pcre2, ARRAY_LEN(pcre2) },
	{ "sqlite3", SONAME_sqlite3, sqlite3, ARRAY_LEN(sqlite3) },
	{ "wslay", SONAME_wslay, wslay, ARRAY_LEN(wslay) },
	{ "z", SONAME_z, z, ARRAY_LEN(z) },
};

void libraries_init(void)
{
	library_rows(libraries, ARRAY_LEN(libraries));
}
