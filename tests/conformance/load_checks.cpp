// L0: what loading and the query may do, and how versions are agreed on.
#include <cstring>
#include <string>

#include "pavo/plugin_helpers.h"

#include "core/plugin_note.h"
#include "core/plugin_table.h"
#include "tests/conformance/checks.h"
#include "tests/conformance/plugin_under_test.h"
#include "tests/conformance/process_state.h"

namespace pavo::conformance {
namespace {

// The query function; NULL with a fault if the file cannot be loaded.
pavo_plugin_query_fn query_of(Context& context) {
  const auto library = open_plugin_library(context.options().plugin);
  if (!library.ok()) {
    context.fault(library.status().message());
    return nullptr;
  }
  return library->query;
}

void check_quiet(Context& context) {
  OutputCatcher output;
  const ProcessState before = ProcessState::now();
  const pavo_plugin_query_fn query = query_of(context);
  const pavo_plugin_api* api = nullptr;
  pavo_error error = test::empty_error();
  if (query != nullptr) {
    query(PAVO_ABI_MAJOR, PAVO_ABI_MINOR, PAVO_ABI_MINOR, test::host_api(), &api, &error);
  }
  const ProcessState after = ProcessState::now();
  const std::string printed = output.stop();
  context.expect(printed.empty(), "expected no output, found: " + printable(printed, 80));
  for (const std::string& line : changes(before, after)) {
    context.fault(line);
  }
}

struct Versions {
  uint32_t major, low, high;
  bool common;  // with a plugin that talks this kit's minor only
};

void check_versions(Context& context) {
  const pavo_plugin_query_fn query = query_of(context);
  if (query == nullptr) {
    return;
  }
  constexpr uint32_t kMinor = PAVO_ABI_MINOR;
  const Versions rows[] = {
      {PAVO_ABI_MAJOR, kMinor, kMinor, true},
      {PAVO_ABI_MAJOR, 0, kMinor, true},
      {PAVO_ABI_MAJOR, kMinor, kMinor + 50, true},
      {PAVO_ABI_MAJOR + 1, kMinor, kMinor, false},
      {PAVO_ABI_MAJOR + 1, 0, kMinor + 50, false},
      {PAVO_ABI_MAJOR, kMinor + 1000, kMinor + 1001, false}};
  const pavo_plugin_api* first = nullptr;
  for (const Versions& row : rows) {
    context.stage(
        "host " + std::to_string(row.major) + "." + std::to_string(row.low) + " to " +
        std::to_string(row.high));
    const pavo_plugin_api* api = nullptr;
    pavo_error error = poisoned_error();
    const int32_t code = query(row.major, row.low, row.high, test::host_api(), &api, &error);
    if (!row.common) {
      context.expect(
          code == PAVO_ERROR_VERSION,
          "expected PAVO_ERROR_VERSION, found code " + std::to_string(code));
      context.expect(api == nullptr, "expected no table with an error");
      if (code != PAVO_OK) {
        checked_error(context, code, error);
      }
      continue;
    }
    if (code != PAVO_OK || api == nullptr) {
      context.fault("expected a table, found " + checked_error(context, code, error));
      continue;
    }
    context.expect(
        api->abi_major == PAVO_ABI_MAJOR && api->abi_minor >= row.low && api->abi_minor <= row.high,
        "expected a minor of the host's range, found " + std::to_string(api->abi_minor));
    first = first == nullptr ? api : first;
    context.expect(api == first || api->submit == first->submit, "expected one table for all");
  }
}

void check_table(Context& context) {
  const auto facts = read_plugin_file(context.options().plugin);
  const pavo_plugin_api* api = load(context, test::host_api());
  if (!facts.ok() || api == nullptr) {
    context.expect(facts.ok(), "expected a readable note (L0.note)");
    return;
  }
  const Status status = check_plugin_table(api, facts->note);
  context.expect(status.ok(), status.message());
  context.expect(
      sdk::view(api->version) == facts->note.version,
      "expected the version of the note, " + facts->note.version);
}

}  // namespace

std::vector<Check> load_checks() {
  return {
      {"L0.quiet", "loading and the query change nothing in the process", check_quiet},
      {"L0.versions", "the query agrees on a version, or says which there are", check_versions},
      {"L0.table", "the table is whole and says what the note says", check_table}};
}

}  // namespace pavo::conformance
