#include "llm/tensor_table.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "llm/message.h"

namespace pavo::llm {
namespace {

Status check_overlaps(const std::vector<FileTensor>& tensors, std::string_view format) {
  std::vector<const FileTensor*> sorted;
  sorted.reserve(tensors.size());
  for (const FileTensor& tensor : tensors) {
    if (tensor.size_bytes > 0) {
      sorted.push_back(&tensor);
    }
  }
  std::sort(sorted.begin(), sorted.end(), [](const FileTensor* a, const FileTensor* b) {
    return std::less<>()(a->data, b->data);
  });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const FileTensor& before = *sorted[i - 1];
    if (std::less<>()(sorted[i]->data, before.data + before.size_bytes)) {
      return {
          Code::kInvalidFile,
          concat(
              format,
              ": tensors ",
              quote(before.name),
              " and ",
              quote(sorted[i]->name),
              ": expected separate data, found overlapping offsets")};
    }
  }
  return {};
}

}  // namespace

Result<TensorTable> TensorTable::make(std::vector<FileTensor> tensors, std::string_view format) {
  PAVO_RETURN_IF_ERROR(check_overlaps(tensors, format));
  TensorTable table;
  table.tensors_ = std::move(tensors);
  table.index_.reserve(table.tensors_.size());
  for (size_t i = 0; i < table.tensors_.size(); ++i) {
    if (!table.index_.emplace(table.tensors_[i].name, i).second) {
      return Status(
          Code::kInvalidFile,
          concat(format, ": tensor ", quote(table.tensors_[i].name), " is there twice"));
    }
  }
  return table;
}

const FileTensor* TensorTable::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace pavo::llm
