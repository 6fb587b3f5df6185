// pavo tokenize: a text as the model's token ids.
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "apps/cli/io.h"
#include "apps/cli/settings.h"
#include "llm/model_file.h"
#include "llm/tokenizer.h"

namespace pavo::cli {

namespace {

struct TokenizeFlags {
  std::string model;
  std::string file = "-";
  bool special = false;
  bool add_bos = false;
  SettingFlags settings;
};

Status tokenize(const TokenizeFlags& flags) {
  PAVO_RETURN_IF_ERROR(load_settings(flags.settings).status());
  PAVO_ASSIGN_OR_RETURN(const llm::ModelSource source, llm::ModelSource::open(flags.model));
  PAVO_ASSIGN_OR_RETURN(const llm::Tokenizer tokenizer, llm::Tokenizer::load(source));
  PAVO_ASSIGN_OR_RETURN(const std::string text, read_all(flags.file));
  size_t dropped = 0;
  PAVO_ASSIGN_OR_RETURN(
      std::vector<int32_t> ids, tokenizer.encode(text, {.parse_special = flags.special}, &dropped));
  if (flags.add_bos) {
    if (!tokenizer.bos()) {
      return Status(Code::kInvalidArgument, "--add-bos: this model names no begin token");
    }
    ids.insert(ids.begin(), *tokenizer.bos());
  }
  if (dropped != 0) {
    note(
        "warning: the vocabulary cannot express " + std::to_string(dropped) + " bytes of the text");
  }
  std::string out = "[";
  for (size_t i = 0; i < ids.size(); ++i) {
    out += (i == 0 ? "" : ", ") + std::to_string(ids[i]);
  }
  return StandardOutput().write(out + "]\n");
}

}  // namespace

void add_tokenize(CLI::App* app, Action* action) {
  CLI::App* command = app->add_subcommand("tokenize", "print a text's token ids as a JSON array");
  const auto flags = std::make_shared<TokenizeFlags>();
  command->add_option("-m,--model", flags->model, "GGUF file")->required()->type_name("PATH");
  command->add_option("-f,--file", flags->file, "text to read; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_flag("--special", flags->special, "read names of control tokens as these tokens");
  command->add_flag("--add-bos", flags->add_bos, "put the model's begin token in front");
  add_common_settings(command, &flags->settings);
  command->callback([flags, action] { *action = [flags] { return tokenize(*flags); }; });
}

}  // namespace pavo::cli
