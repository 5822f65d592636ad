// Module ids that do not depend on the checkout's path, so that the bundle is reproducible.
module.exports = { optimization: { moduleIds: 'natural', chunkIds: 'natural' } };
