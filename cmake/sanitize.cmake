# PAVO_SANITIZE=address,undefined or thread; empty for none.
set(PAVO_SANITIZE "" CACHE STRING "Sanitizers for every target, comma separated")
if(PAVO_SANITIZE)
  add_compile_options(-fsanitize=${PAVO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PAVO_SANITIZE})
endif()
