// Several lambdas as one visitor of a std::variant.
#pragma once

namespace pavo {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace pavo
