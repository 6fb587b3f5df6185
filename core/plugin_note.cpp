#include "core/plugin_note.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "pavo/plugin.h"

#include "core/host_api.h"

namespace pavo {
namespace {

constexpr size_t kMaxNoteText = 16384;
constexpr size_t kMaxValue = 1024;
constexpr size_t kMaxId = 64;

Status bad(const std::string& text) {
  return Status(Code::kInvalidFile, "plugin note: " + text);
}

Status bad_value(std::string_view key, std::string_view value, const char* expected) {
  return bad(std::string(key) + "=" + printable(value, 80) + ", expected " + expected);
}

template <typename T>
bool parse_number(std::string_view text, T* out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && stop == end && !text.empty() && text[0] != '-';
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t at = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, at));
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return parts;
}

bool valid_id(std::string_view id) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !id.empty() && id.size() <= kMaxId && letter(id[0]) &&
         std::all_of(id.begin(), id.end(), [&](char c) {
           return letter(c) || c == '-' || c == '_' || c == '.';
         });
}

using Fields = std::map<std::string_view, std::string_view>;

Result<Fields> split_fields(std::string_view text) {
  if (text.size() > kMaxNoteText) {
    return bad("is longer than " + std::to_string(kMaxNoteText) + " bytes");
  }
  // Compilers pad the text with zeros to a multiple of four.
  while (!text.empty() && text.back() == '\0') {
    text.remove_suffix(1);
  }
  Fields fields;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) {
      continue;
    }
    const size_t at = line.find('=');
    if (at == std::string_view::npos || at == 0) {
      return bad("line \"" + printable(line, 80) + "\" is not of the form key=value");
    }
    const std::string_view key = line.substr(0, at);
    const std::string_view value = line.substr(at + 1);
    if (value.size() > kMaxValue || printable(line) != line) {
      return bad(
          "the value of " + printable(key, 40) + " is longer than " + std::to_string(kMaxValue) +
          " bytes or holds control characters");
    }
    if (!fields.emplace(key, value).second) {
      return bad("key " + std::string(key) + " appears twice");
    }
  }
  return fields;
}

std::string_view get(const Fields& fields, std::string_view key) {
  const auto it = fields.find(key);
  return it == fields.end() ? std::string_view() : it->second;
}

Status parse_abi(std::string_view value, PluginNote* note) {
  const size_t dot = value.find('.');
  const size_t dash = value.find('-');
  const bool ok = dot != std::string_view::npos && dash != std::string_view::npos && dot < dash &&
                  parse_number(value.substr(0, dot), &note->abi_major) &&
                  parse_number(value.substr(dot + 1, dash - dot - 1), &note->abi_min_minor) &&
                  parse_number(value.substr(dash + 1), &note->abi_max_minor) &&
                  note->abi_min_minor <= note->abi_max_minor;
  return ok ? Status()
            : bad_value("abi", value, "major.min_minor-max_minor with min <= max, e.g. 0.1-1");
}

Status parse_targets(
    std::string_view key,
    std::string_view value,
    std::string_view prefix,
    std::vector<CudaTarget>* out) {
  for (const std::string_view name : split(value, ',')) {
    CudaTarget target;
    target.name = name;
    std::string_view digits =
        name.substr(0, prefix.size()) == prefix ? name.substr(prefix.size()) : std::string_view();
    if (!digits.empty() && digits.back() >= 'a' && digits.back() <= 'z') {
      target.specific = true;
      digits.remove_suffix(1);
    }
    if (digits.size() > 4 || !parse_number(digits, &target.capability) || target.capability < 10) {
      return bad_value(
          key, value, key == "sass" ? "a list like sm_60,sm_61" : "a list like compute_60");
    }
    out->push_back(std::move(target));
  }
  return Status();
}

Status parse_toolkit(std::string_view value, int32_t* out) {
  int32_t major = 0;
  int32_t minor = 0;
  const size_t dot = value.find('.');
  if (dot == std::string_view::npos || !parse_number(value.substr(0, dot), &major) ||
      !parse_number(value.substr(dot + 1), &minor) || major > 1000 || minor > 99) {
    return bad_value("toolkit", value, "major.minor, e.g. 12.4");
  }
  *out = major * 1000 + minor * 10;
  return Status();
}

Status parse_kind(std::string_view value, PluginKind* out) {
  for (const PluginKind kind : {PluginKind::kCpu, PluginKind::kCuda, PluginKind::kOther}) {
    if (value == plugin_kind_name(kind)) {
      *out = kind;
      return Status();
    }
  }
  return bad_value("kind", value, "cpu, cuda or other");
}

Status parse_cuda_fields(const Fields& fields, PluginNote* note) {
  PAVO_RETURN_IF_ERROR(parse_targets("sass", get(fields, "sass"), "sm_", &note->sass));
  PAVO_RETURN_IF_ERROR(parse_targets("ptx", get(fields, "ptx"), "compute_", &note->ptx));
  if (!get(fields, "toolkit").empty()) {
    PAVO_RETURN_IF_ERROR(parse_toolkit(get(fields, "toolkit"), &note->toolkit));
  }
  if (note->kind != PluginKind::kCuda) {
    return Status();
  }
  if (note->sass.empty() && note->ptx.empty()) {
    return bad("kind=cuda, but neither sass nor ptx names a code target");
  }
  if (note->toolkit == 0) {
    return bad("kind=cuda, but toolkit is missing; expected e.g. toolkit=12.4");
  }
  return Status();
}

}  // namespace

const char* plugin_kind_name(PluginKind kind) {
  switch (kind) {
    case PluginKind::kCpu:
      return "cpu";
    case PluginKind::kCuda:
      return "cuda";
    case PluginKind::kOther:
      return "other";
  }
  return "other";
}

std::string cuda_version_text(int32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Result<PluginNote> parse_plugin_note(std::string_view text) {
  PAVO_ASSIGN_OR_RETURN(const Fields fields, split_fields(text));
  for (const char* key : {"id", "version", "abi", "kind"}) {
    if (get(fields, key).empty()) {
      return bad("key " + std::string(key) + " is missing");
    }
  }
  PluginNote note;
  note.id = get(fields, "id");
  if (!valid_id(note.id)) {
    return bad_value("id", note.id, "at most 64 of a-z, 0-9, '-', '_', '.', e.g. cuda-sm61");
  }
  note.version = get(fields, "version");
  note.vendor = get(fields, "vendor");
  note.license = get(fields, "license");
  PAVO_RETURN_IF_ERROR(parse_abi(get(fields, "abi"), &note));
  PAVO_RETURN_IF_ERROR(parse_kind(get(fields, "kind"), &note.kind));
  PAVO_RETURN_IF_ERROR(parse_cuda_fields(fields, &note));
  const std::string_view driver = get(fields, "driver_min");
  if (!driver.empty() && !parse_number(driver, &note.driver_min)) {
    return bad_value("driver_min", driver, "a driver version, e.g. 12040");
  }
  for (const std::string_view name : split(get(fields, "needs"), ',')) {
    note.needs.emplace_back(name);
  }
  return note;
}

Result<PluginFileFacts> read_plugin_file(const std::filesystem::path& path) {
  PluginFileFacts facts;
  PAVO_ASSIGN_OR_RETURN(facts.elf, read_elf_facts(path));
  for (const ElfNote& note : facts.elf.notes) {
    if (note.name == "PAVO" && note.type == PAVO_NOTE_TYPE) {
      PAVO_ASSIGN_OR_RETURN(facts.note, parse_plugin_note(note.description));
      return facts;
    }
  }
  return Status(
      Code::kInvalidFile,
      "no Pavo plugin note (an ordinary library? plugins need PAVO_PLUGIN_NOTE of pavo/plugin.h)");
}

}  // namespace pavo
