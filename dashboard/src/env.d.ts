// What the bundler makes of imports that are not code.
/// <reference types="vite/client" />
