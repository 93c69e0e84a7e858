// The text of isa::Error.
#include "isa_checks/error.h"
#include <utility>

namespace kiln::isa {

Error::Error(std::string subject_, std::string fact_, std::string remedy_)
    : std::runtime_error(subject_ + ": " + fact_ + "; " + remedy_), subject(std::move(subject_)), fact(std::move(fact_)),
      remedy(std::move(remedy_)) {}

} // namespace kiln::isa
