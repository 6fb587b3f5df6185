// pavo info: what a model file holds, whether or not this build can run it.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "apps/cli/command.h"
#include "apps/cli/io.h"
#include "apps/cli/settings.h"
#include "core/host_api.h"
#include "llm/message.h"
#include "llm/model.h"
#include "llm/model_file.h"

namespace pavo::cli {

namespace {

using nlohmann::ordered_json;

struct InfoFlags {
  std::string model;
  bool json = false;
  bool metadata = false;
  bool tensors = false;
};

// What one tensor type holds of the file.
struct TypeShare {
  int64_t tensors = 0;
  int64_t elements = 0;
  uint64_t bytes = 0;
};

int64_t element_count(const llm::FileTensor& tensor) {
  int64_t count = 1;
  for (const int64_t dimension : tensor.shape) {
    count *= dimension;
  }
  return count;
}

// A value for people and JSON alike; arrays only by their kind, they may have a million elements.
ordered_json gguf_value(const llm::GgufFile& file, const llm::GgufEntry& entry) {
  if (entry.value.type == llm::GgufType::kString) {
    return printable(
        {reinterpret_cast<const char*>(entry.value.bytes.data()), entry.value.bytes.size()});
  }
  if (entry.value.type == llm::GgufType::kBool) {
    const auto value = file.get<bool>(entry.key);
    return value.ok() ? ordered_json(*value) : ordered_json();
  }
  if (const auto integer = file.get<int64_t>(entry.key); integer.ok()) {
    return *integer;
  }
  if (const auto number = file.get<double>(entry.key); number.ok()) {
    return *number;
  }
  return describe(entry.value);
}

ordered_json metadata_of(const llm::ModelSource& source) {
  ordered_json metadata = ordered_json::object();
  if (source.gguf() != nullptr) {
    for (const llm::GgufEntry& entry : source.gguf()->entries()) {
      metadata[printable(entry.key)] = gguf_value(*source.gguf(), entry);
    }
  } else {
    for (const auto& [key, value] : source.hub_config()->items()) {
      metadata[printable(key)] = value;
    }
  }
  return metadata;
}

ordered_json tensors_of(const llm::ModelSource& source) {
  ordered_json tensors = ordered_json::array();
  for (const llm::FileTensor& tensor : source.tensors().all()) {
    tensors.push_back(
        {{"name", printable(tensor.name)},
         {"type", tensor.type_name},
         {"shape", tensor.shape},
         {"bytes", tensor.size_bytes}});
  }
  return tensors;
}

ordered_json describe_model(const llm::ModelSource& source) {
  std::map<std::string, TypeShare> types;
  TypeShare all;
  for (const llm::FileTensor& tensor : source.tensors().all()) {
    for (TypeShare* share : {&types[tensor.type_name], &all}) {
      ++share->tensors;
      share->elements += element_count(tensor);
      share->bytes += tensor.size_bytes;
    }
  }
  ordered_json info;
  info["path"] = source.path();
  info["format"] = source.gguf() != nullptr ? "gguf v" + std::to_string(source.gguf()->version())
                                            : std::string("hub directory");
  info["architecture"] = printable(source.architecture());
  if (source.gguf() != nullptr) {
    if (const auto name = source.gguf()->get<std::string_view>("general.name"); name.ok()) {
      info["name"] = printable(*name);
    }
  }
  info["tensors"] = all.tensors;
  info["parameters"] = all.elements;
  info["tensor_bytes"] = all.bytes;
  for (const auto& [name, share] : types) {
    info["types"][name] = {{"tensors", share.tensors}, {"bytes", share.bytes}};
  }
  const auto model = llm::make_model(source);
  info["runs_here"] = model.ok();
  if (model.ok()) {
    const llm::ModelInfo& facts = (*model)->info();
    info["layers"] = facts.layers;
    info["context_length"] = facts.context_length;
    info["vocabulary"] = facts.vocab_size;
  } else {
    info["reason"] = model.status().message();
  }
  return info;
}

std::string scalar_text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string row(const std::string& key, const std::string& value) {
  std::string text = key;
  text.resize(std::max<size_t>(text.size() + 1, 16), ' ');
  return text + value + "\n";
}

std::string text_report(const ordered_json& info) {
  std::string text;
  for (const auto& [key, value] : info.items()) {
    if (key == "types") {
      for (const auto& [type, share] : value.items()) {
        std::array<char, 96> line{};
        std::snprintf(
            line.data(),
            line.size(),
            "%s: %lld tensors, %.1f MB",
            type.c_str(),
            share["tensors"].get<long long>(),
            share["bytes"].get<double>() / 1e6);
        text += row("type", line.data());
      }
    } else if (key == "metadata") {
      text += "\nmetadata:\n";
      for (const auto& [name, item] : value.items()) {
        text += "  " + name + " = " + scalar_text(item) + "\n";
      }
    } else if (key == "tensor_list") {
      text += "\ntensors:\n";
      for (const ordered_json& tensor : value) {
        text += "  " + scalar_text(tensor["name"]) + " " + scalar_text(tensor["type"]) + " " +
                tensor["shape"].dump() + "\n";
      }
    } else if (key == "tensor_bytes" || key == "parameters") {
      std::array<char, 64> line{};
      std::snprintf(line.data(), line.size(), "%.1f million", value.get<double>() / 1e6);
      text += row(key, line.data());
    } else {
      text += row(key, scalar_text(value));
    }
  }
  return text;
}

Status info(const InfoFlags& flags) {
  PAVO_ASSIGN_OR_RETURN(const llm::ModelSource source, llm::ModelSource::open(flags.model));
  ordered_json info = describe_model(source);
  if (flags.metadata) {
    info["metadata"] = metadata_of(source);
  }
  if (flags.tensors) {
    info["tensor_list"] = tensors_of(source);
  }
  const std::string text =
      flags.json ? info.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"
                 : text_report(info);
  return StandardOutput().write(text);
}

}  // namespace

void add_info(CLI::App* app, Action* action) {
  CLI::App* command = app->add_subcommand("info", "describe a model file");
  const auto flags = std::make_shared<InfoFlags>();
  command->add_option("model", flags->model, "GGUF file or Hub directory")
      ->required()
      ->type_name("PATH");
  command->add_flag("--json", flags->json, "as JSON");
  command->add_flag("--metadata", flags->metadata, "also every key of the file");
  command->add_flag("--tensors", flags->tensors, "also every tensor");
  command->callback([flags, action] { *action = [flags] { return info(*flags); }; });
}

}  // namespace pavo::cli
